/** What a subscriber can do with the notification service. */
import type { Address } from '../http/address.js'
import type { Progress } from '../http/send.js'
import { readCreateAnswer, summaryOf, toCreate } from '../subscriptions/create-answer.js'
import {
  type CreateSubscriptionInput,
  createSubscriptionInputSchema,
  loopbackSubscriptionInputSchema,
} from '../subscriptions/create-input.js'
import type { CreatedSubscription, CreateSubscriptionResult } from '../subscriptions/create-result.js'
import {
  createAddress,
  createRequest,
  type Routes,
  unsubscribeRequest,
  updateRequest,
} from '../subscriptions/requests.js'
import { createFailure } from '../subscriptions/unknown-outcome.js'
import { readSubscriptionAnswer, toUnsubscribe, toUpdate } from '../subscriptions/update-answer.js'
import {
  subscriptionIdSchema,
  type UpdateSubscriptionParametersInput,
  updateSubscriptionParametersInputSchema,
} from '../subscriptions/update-input.js'
import { validInput } from './call-input.js'
import type { CallOptions } from './call-options.js'
import { Calls } from './calls.js'
import type { NotificationClientOptions } from './client-options.js'
import { fromEnvironment } from './environment.js'
import { validOptions } from './valid-options.js'

/**
 * A client of the notification service. Safe to share: make one per set of credentials and keep it.
 *
 * Every method rejects with a `NotificationError`, with the reason of the caller's own `signal`, or with what the
 * caller's own `auth.getAccessToken` threw. Errors and logs never contain credentials, tokens or parameter values.
 *
 * @example
 * ```ts
 * const client = new NotificationClient({
 *   baseUrl: 'https://notifications.example.com',
 *   auth: { authUrl: 'https://auth.acme.example.com', domain: 'acme', clientId, clientSecret },
 * })
 * const { subscriptionId } = await client.createSubscription({
 *   notificationTypes: ['behavioral'],
 *   usernames: ['alice'],
 *   callbackUrl: 'https://app.example.com/notifications',
 * })
 * ```
 */
export class NotificationClient implements AsyncDisposable {
  readonly #baseUrl: URL
  readonly #createAddress: Address
  readonly #routes: Routes
  readonly #inputSchema: typeof createSubscriptionInputSchema
  readonly #calls: Calls

  /** @throws `ConfigurationError` that lists everything that is wrong with the options; nothing is sent */
  constructor(options: NotificationClientOptions) {
    const valid = validOptions(options)
    this.#baseUrl = valid.baseUrl
    this.#createAddress = createAddress(valid.baseUrl)
    this.#routes = valid.routes ?? {}
    this.#inputSchema = valid.allowInsecureLoopback
      ? loopbackSubscriptionInputSchema
      : createSubscriptionInputSchema
    this.#calls = new Calls(valid)
  }

  /**
   * A client from `NOTIFICATION_BASE_URL`, `NOTIFICATION_AUTH_URL`, `NOTIFICATION_DOMAIN`,
   * `NOTIFICATION_CLIENT_ID` and `NOTIFICATION_CLIENT_SECRET`; where they are set, also from `NOTIFICATION_SCOPE`,
   * `NOTIFICATION_CREDENTIALS_ENCODING` and `NOTIFICATION_CA_FILE`, the name of a file with certificates in PEM.
   *
   * @param options - every option that the environment does not set
   * @param env - where to read the variables. Default: `process.env`
   * @throws `ConfigurationError` that names every variable that is missing, or whose value cannot work
   */
  static fromEnv(
    options?: Omit<NotificationClientOptions, 'baseUrl' | 'auth'>,
    env: Readonly<Record<string, string | undefined>> = process.env,
  ): NotificationClient {
    return fromEnvironment(clientWith, options, env)
  }

  /**
   * Creates a subscription (docs/service.md, States and Endpoints).
   *
   * @throws `SubscriptionConflictError` on 409: a subscription exists for some of these types, users and callback URL
   * @throws `OutcomeUnknownError` when the answer was lost: creating again with `recreateIfExists: true` settles it
   * @throws `InvalidRequestError` or `ClosedError` before anything is sent; `TokenRequestError`, `ApiError`,
   * `ConnectionError`, `TimeoutError` when nothing was created; `ResponseValidationError` when the answer holds no
   * usable id, or something else than the service wrote it
   */
  async createSubscription(
    input: CreateSubscriptionInput,
    options?: CallOptions,
  ): Promise<CreatedSubscription> {
    const result = await this.#create('createSubscription', input, options)
    if (!result.created) throw result.conflict
    return { subscriptionId: result.subscriptionId }
  }

  /**
   * Like {@link NotificationClient.createSubscription}, but a conflict is a result and not an error.
   *
   * @throws what {@link NotificationClient.createSubscription} throws, but for `SubscriptionConflictError`
   *
   * @example
   * ```ts
   * const result = await client.tryCreateSubscription(input)
   * console.log(result.created ? result.subscriptionId : result.conflict.message)
   * ```
   */
  tryCreateSubscription(
    input: CreateSubscriptionInput,
    options?: CallOptions,
  ): Promise<CreateSubscriptionResult> {
    return this.#create('tryCreateSubscription', input, options)
  }

  /**
   * Ends a subscription. Method and path come from the service's public developer pages (docs/service.md, Endpoints);
   * see the `routes` option.
   *
   * @throws `SubscriptionNotFoundError` when no active subscription has this id
   * @throws `InvalidRequestError` or `ClosedError` before anything is sent; `TokenRequestError`, `ApiError`,
   * `ConnectionError`, `TimeoutError`, `ResponseValidationError`: repeating the call is safe
   */
  async unsubscribe(subscriptionId: number, options?: CallOptions): Promise<void> {
    const method = 'unsubscribe'
    const id = validInput(method, subscriptionIdSchema, subscriptionId)
    const request = unsubscribeRequest(this.#baseUrl, this.#routes.unsubscribe, id)
    const progress: Progress = { lostAttempts: 0 }
    const answer = await this.#calls.send(method, request, options, {
      repeatable: true,
      progress,
      attempt: toUnsubscribe,
    })
    // An earlier attempt of this call, whose answer was lost, has ended the subscription.
    if (answer.status === 404 && progress.lostAttempts > 0) return
    readSubscriptionAnswer(answer, id, toUnsubscribe, progress)
  }

  /**
   * Changes parameters of a subscription: later callbacks carry the new values (docs/service.md, Rules). Pairs that
   * are not named keep their values. Method and path come from the service's public developer pages (docs/service.md,
   * Endpoints); see the `routes` option.
   *
   * @throws `SubscriptionNotFoundError` when no active subscription has this id
   * @throws `InvalidRequestError` or `ClosedError` before anything is sent; `TokenRequestError`, `ApiError`,
   * `ConnectionError`, `TimeoutError`, `ResponseValidationError`: repeating the call is safe
   *
   * @example
   * ```ts
   * await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: newToken } })
   * ```
   */
  async updateSubscriptionParameters(
    subscriptionId: number,
    input: UpdateSubscriptionParametersInput,
    options?: CallOptions,
  ): Promise<void> {
    const method = 'updateSubscriptionParameters'
    const id = validInput(method, subscriptionIdSchema, subscriptionId)
    const valid = validInput(method, updateSubscriptionParametersInputSchema, input)
    const request = updateRequest(this.#baseUrl, this.#routes.update, id, valid)
    const progress: Progress = { lostAttempts: 0 }
    const answer = await this.#calls.send(method, request, options, {
      repeatable: true,
      progress,
      attempt: toUpdate,
    })
    readSubscriptionAnswer(answer, id, toUpdate, progress)
  }

  /**
   * The bearer token that the client uses, for a caller's own requests: from memory while the token is valid, with a
   * refresh in the background when its end is near (docs/client.md, Tokens).
   *
   * @throws `InvalidRequestError` or `ClosedError` before anything is sent; `TokenRequestError`,
   * `ResponseValidationError`, `ConnectionError`, `TimeoutError`; `ConfigurationError` when the client authenticates
   * with user name and password
   */
  getAccessToken(options?: CallOptions): Promise<string> {
    // The hot path: no async function, no timer, and one promise for everybody.
    const held = options === undefined ? this.#calls.heldAccessToken() : undefined
    return held ?? this.#calls.accessToken('getAccessToken', options)
  }

  /**
   * Lets the calls in flight finish and closes the connections that the client opened itself, never a dispatcher
   * that it was given. Later calls are refused with a `ClosedError`. A script that never closes its client still exits.
   */
  close(): Promise<void> {
    return this.#calls.close()
  }

  /** Same as {@link NotificationClient.close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #create(
    method: string,
    input: CreateSubscriptionInput,
    options: CallOptions | undefined,
  ): Promise<CreateSubscriptionResult> {
    const valid = validInput(method, this.#inputSchema, input)
    const wanted = summaryOf(valid)
    const request = createRequest(this.#createAddress, valid)
    const progress: Progress = { lostAttempts: 0 }
    const repeatable = valid.recreateIfExists === true
    try {
      const details = { repeatable, progress, attempt: toCreate }
      return readCreateAnswer(await this.#calls.send(method, request, options, details), wanted)
    } catch (error) {
      throw createFailure(error, wanted, progress)
    }
  }
}

/** Not in the class: a build would rename a class that names itself, and its name is what logs show. */
function clientWith(options: NotificationClientOptions): NotificationClient {
  return new NotificationClient(options)
}
