/** Sends one request to the service, classifies its outcome, and knows which routes work. */
import {
  ApiError,
  InvalidRequestError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  TokenRequestError,
} from '../errors.js'
import type { RouteName } from '../shared/routes.js'
import {
  isAboutCredentials,
  isBusy,
  isNoRoute,
  isServerError,
  isTokenRefused,
  provesCreate,
} from '../shared/statuses.js'
import { messageOf } from '../shared/text.js'
import { withTimeLimit } from '../shared/waits.js'
import { mayHaveTakenEffect } from '../subscriptions/answer-errors.js'
import type { UpdateSubscriptionParametersInput } from '../subscriptions/schemas.js'
import type { KeeperClient } from './options.js'
import type { Problems } from './reporter.js'
import type { Reply } from './rules/apply.js'
import type { PlannedRequest } from './rules/decide.js'
import { callbackUrlOf, typesOf } from './rules/record.js'
import { brokenAnswerMs, now } from './timing.js'

const requestTimeoutMs = 30_000

/**
 * Why a user could not be reconciled. `unavailable`: the service fails, or the store for this user. `refused`: the service
 * refused this request. `invalid`: the client refuses the request and sent nothing. `blocked`: the route is wrong. `bug`: the
 * keeper has thrown.
 */
const failureKinds = ['credentials', 'unavailable', 'refused', 'invalid', 'blocked', 'bug'] as const

export interface Failure {
  readonly kind: (typeof failureKinds)[number]
  readonly error: unknown
  readonly retryAfterMs?: number | undefined
  /** Whether the request may take effect, now or later. */
  readonly isLost?: boolean
}

export function isFailure<T extends { readonly kind: string }>(result: Failure | T): result is Failure {
  return failureKinds.some((kind) => kind === result.kind)
}

/** Never rejects. @param values - parameters and headers @param signal - ends the wait for the answer */
export async function sendRequest(
  client: KeeperClient,
  request: PlannedRequest,
  username: string,
  values: UpdateSubscriptionParametersInput,
  signal: AbortSignal,
): Promise<Reply | Failure> {
  // The keeper itself repeats requests, so that no request leaves long after its claim.
  const options = { retry: false, timeoutMs: requestTimeoutMs, signal } as const
  const send = async (): Promise<Reply> => {
    if (request.kind === 'unsubscribe') await client.unsubscribe(request.id, options)
    else if (request.kind === 'update') await client.updateSubscriptionParameters(request.id, values, options)
    else {
      const input = {
        ...values,
        notificationTypes: typesOf(request.spec),
        usernames: [username],
        callbackUrl: callbackUrlOf(request.spec),
        ...(request.kind === 'recreate' && { recreateIfExists: true }),
      }
      const result = await client.tryCreateSubscription(input, options)
      return result.created ? { kind: 'created', id: result.subscriptionId } : { kind: 'conflict' }
    }
    return { kind: 'ok' }
  }
  try {
    // A custom client may have no time limit.
    return await withTimeLimit(2 * requestTimeoutMs, send)
  } catch (error) {
    return classify(request, error)
  }
}

/** The outcome of a request that has thrown. */
export function classify({ kind }: PlannedRequest, error: unknown): Reply | Failure {
  const isCreate = kind === 'create' || kind === 'recreate'
  if (isCreate && error instanceof SubscriptionConflictError) return { kind: 'conflict' }
  if (isCreate && error instanceof ResponseValidationError && provesCreate(error.status))
    return { kind: 'unreadable', error }
  if (!isCreate && error instanceof SubscriptionNotFoundError)
    return { kind: error.provesEnded ? 'gone' : 'not-found', error }
  const isOfService = error instanceof ApiError && error.intermediary === undefined
  if (!isCreate && isOfService && isNoRoute(error.status)) return { kind: 'no-route', error }
  const answer = error instanceof OutcomeUnknownError ? error.cause : error
  const retryAfterMs =
    answer instanceof ApiError || answer instanceof TokenRequestError ? answer.retryAfterMs : undefined
  const isLost = mayHaveTakenEffect(error)
  const failure = { kind: failureKindOf(error), error, retryAfterMs, isLost }
  return !isCreate && !isLost && failure.kind === 'refused' ? { kind: 'unclear', error } : failure
}

function failureKindOf(error: unknown): Failure['kind'] {
  if (error instanceof InvalidRequestError) return 'invalid'
  if (!(error instanceof ApiError || error instanceof TokenRequestError)) return 'unavailable'
  // The answer of a proxy says nothing about credentials or the request.
  if (error.intermediary !== undefined) return 'unavailable'
  if (error instanceof TokenRequestError)
    return isTokenRefused(error.status, error.error) ? 'credentials' : 'unavailable'
  if (isAboutCredentials(error.status)) return 'credentials'
  return isBusy(error.status) || isServerError(error.status) ? 'unavailable' : 'refused'
}

/** Which routes work, as far as this process knows: those to update and unsubscribe, which the interface leaves open. */
export class KnownRoutes {
  readonly #confirmed = new Set<RouteName>()
  /** Wrong routes, and when each may be tried again. */
  readonly #wrong = new Map<RouteName, number>()
  /** The users who test unconfirmed routes. */
  readonly #testers = new Map<RouteName, string>()
  /** Users who wait for those tests. */
  readonly #waiting: (() => void)[] = []

  constructor(private readonly problems: Problems) {}

  isConfirmed(route: RouteName): boolean {
    return this.#confirmed.has(route) && !this.#wrong.has(route)
  }

  /** Whether the route may be tried: it is not known to be wrong, or was not tried for a while. */
  mayTry(route: RouteName, isIdKnown = true): boolean {
    const againFrom = this.#wrong.get(route)
    // With an unknown id the subscription would have to be replaced first, for a route that may still be wrong.
    return againFrom === undefined || (isIdKnown && now() >= againFrom)
  }

  /** One user at a time tests an unconfirmed route; the others wait. {@link end} must follow. @returns whether this user waited */
  async begin(route: RouteName, username: string): Promise<boolean> {
    let hasWaited = false
    for (; this.mayTry(route) && !this.isConfirmed(route); hasWaited = true) {
      const tester = this.#testers.get(route) ?? username
      this.#testers.set(route, tester)
      if (tester === username) break
      // Two users who test a route each, and wait for the other, would wait for ever.
      this.end(username)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return hasWaited
  }

  end(username: string): void {
    for (const [route, tester] of this.#testers) {
      if (tester !== username) continue
      this.#testers.delete(route)
      this.#wake()
    }
  }

  #wake(): void {
    for (const resume of this.#waiting.splice(0)) resume()
  }

  confirm(route: RouteName): void {
    this.#confirmed.add(route)
    this.#wake()
    if (this.#wrong.delete(route) && this.#wrong.size === 0) this.problems.resolve('ROUTES')
  }

  refute(route: RouteName, error: unknown): void {
    this.#wrong.set(route, now() + brokenAnswerMs)
    this.#wake()
    this.problems.begin('ROUTES', routesMessage([...this.#wrong.keys()], error), { error })
  }
}

function routesMessage(routes: readonly RouteName[], error: unknown): string {
  const settings = routes.map((route) => `\`routes.${route}\``).join(' and ')
  const refusal =
    error instanceof ApiError && error.url ? `${error.url} answered ${error.status}` : messageOf(error)
  const answer = error === undefined ? 'an unsubscribe was answered 2xx, and ended nothing' : refusal
  const replaced =
    'Or subscriptions were replaced: give all processes one store, and name each user once (not also Alice as alice).'
  return (
    `The service has another route than ${settings} of the client: ${answer}. Set \`routes.update\` and ` +
    '`routes.unsubscribe` to the methods and paths of this service: until then subscriptions are not updated or not ended. ' +
    (error instanceof SubscriptionNotFoundError ? replaced : '')
  ).trim()
}
