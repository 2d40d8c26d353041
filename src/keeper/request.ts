/** Sends one request to the service and classifies its outcome. */
import {
  ApiError,
  InvalidRequestError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  TokenRequestError,
} from '../errors.js'
import {
  isAboutCredentials,
  isBusy,
  isNoRoute,
  isServerError,
  isTokenRefused,
  provesCreate,
} from '../shared/statuses.js'
import { withTimeLimit } from '../shared/waits.js'
import { mayHaveTakenEffect } from '../subscriptions/answer-errors.js'
import type { UpdateSubscriptionParametersInput } from '../subscriptions/schemas.js'
import type { Reply } from './rules/apply.js'
import type { PlannedRequest } from './rules/decide.js'
import { callbackUrlOf, typesOf } from './rules/record.js'
import type { KeeperClient } from './types.js'

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

export function isFailure<Other extends { readonly kind: string }>(
  result: Failure | Other,
): result is Failure {
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
  const once = { retry: false, timeoutMs: requestTimeoutMs, signal } as const
  const send = async (): Promise<Reply> => {
    if (request.kind === 'unsubscribe') await client.unsubscribe(request.id, once)
    else if (request.kind === 'update') await client.updateSubscriptionParameters(request.id, values, once)
    else {
      const input = {
        ...values,
        notificationTypes: typesOf(request.spec),
        usernames: [username],
        callbackUrl: callbackUrlOf(request.spec),
        ...(request.kind === 'recreate' && { recreateIfExists: true }),
      }
      const result = await client.tryCreateSubscription(input, once)
      return result.created ? { kind: 'created', id: result.subscriptionId } : { kind: 'conflict' }
    }
    return { kind: 'ok' }
  }
  // A custom client may have no time limit.
  const limitMs = 2 * requestTimeoutMs
  const late = () => new Error(`The client took longer than ${limitMs / 1_000} s.`)
  try {
    return await withTimeLimit(limitMs, send, late)
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
