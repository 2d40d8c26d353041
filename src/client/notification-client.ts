/** The client: every call to the notification service. */
import { accessTokenOf, authorizerFor } from '../auth/authorizer.js'
import { ClosedError, NotificationError } from '../errors.js'
import { fetchTransport } from '../http/fetch.js'
import { defaultRetryPolicy, retryPolicy } from '../http/retry.js'
import { Semaphore } from '../http/semaphore.js'
import { type Call, type CallSettings, withCall } from '../http/send.js'
import { maxConnections, undiciTransport } from '../http/undici.js'
import { logOf } from '../logger.js'
import { isInsecureLoopback, withoutEndingSlashes } from '../shared/addresses.js'
import { InFlight } from '../shared/in-flight.js'
import { channelFor, traced } from '../shared/tracing.js'
import {
  type CreatedSubscription,
  type CreateSubscriptionResult,
  SubscriptionEndpoints,
} from '../subscriptions/endpoints.js'
import {
  type CreateSubscriptionInput,
  type UpdateSubscriptionParametersInput,
  validInput,
} from '../subscriptions/schemas.js'
import { fromEnvironment } from './environment.js'
import {
  type CallOptions,
  callOptionsSchema,
  type NotificationClientOptions,
  validOptions,
} from './options.js'

const callChannel = channelFor('call')

/**
 * A client of the notification service. Safe to share: make one per set of credentials and keep it.
 *
 * Every method rejects with a `NotificationError`, with the reason of the caller's own `signal`, or with the error of the
 * caller's own `auth.getAccessToken` or `auth.clientAuthentication`: `InvalidRequestError` or `ClosedError` before anything
 * is sent, then `TokenRequestError`, `ApiError`, `ConnectionError`, `TimeoutError` or `ResponseValidationError`. Errors and
 * logs never contain credentials, tokens or the parameter values of the call.
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
  /**
   * The service and the tenant as text, such as `https://notifications.example.com acme`: `baseUrl`, then `auth.domain` or
   * the user name, if there is one. A keeper's records belong to them (docs/keeper.md, Stores).
   */
  readonly service: string
  readonly #endpoints: SubscriptionEndpoints
  /** The settings of a call whose options set nothing. */
  readonly #settings: Omit<CallSettings, 'method'>
  readonly #calls = new InFlight()
  #isClosed = false

  /** @throws `ConfigurationError` that lists every problem of the options; nothing is sent */
  constructor(options: NotificationClientOptions) {
    const valid = validOptions(options)
    const { auth, baseUrl, ca, dispatcher, fetch, headers, routes } = valid
    const tenant = 'domain' in auth ? auth.domain : 'username' in auth ? auth.username : ''
    this.service = `${withoutEndingSlashes(baseUrl.href)} ${tenant}`.trim()
    this.#endpoints = new SubscriptionEndpoints(baseUrl, headers, routes)
    const log = logOf(valid.logger)
    const plain = [baseUrl, ...('authUrl' in auth ? [new URL(auth.authUrl)] : [])].filter(isInsecureLoopback)
    if (plain.length > 0) {
      const fields = { addresses: plain.map(({ href }) => href) }
      const message =
        'Credentials are sent over unencrypted http, even beyond this machine if the port is forwarded'
      log('warn', { event: 'client.unencrypted', ...fields }, message)
    }
    const shared = {
      transport: fetch ? fetchTransport(fetch) : undiciTransport(ca, dispatcher),
      retry: retryPolicy(valid.retry, defaultRetryPolicy),
      timeoutMs: valid.timeoutMs,
      log,
    }
    const gateway = headers && { origin: baseUrl.origin, headers }
    const authorizer = authorizerFor(auth, { ...shared, gateway })
    // Not for token requests: a request that holds a connection may wait for a token.
    const connections = fetch || dispatcher ? undefined : new Semaphore(maxConnections)
    this.#settings = { ...shared, authorizer, connections }
  }

  /**
   * A client from the environment: `NOTIFICATION_BASE_URL` with `NOTIFICATION_AUTH_URL`, `NOTIFICATION_DOMAIN`,
   * `NOTIFICATION_CLIENT_ID` and `NOTIFICATION_CLIENT_SECRET`, or with `NOTIFICATION_USERNAME` and
   * `NOTIFICATION_PASSWORD`. Others are optional (docs/client.md, Environment variables).
   *
   * @param options - every option except `baseUrl` and `auth`; an option replaces its variable
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
   */
  async createSubscription(
    input: CreateSubscriptionInput,
    options?: CallOptions,
  ): Promise<CreatedSubscription> {
    const result = await this.#call('createSubscription', options, (call) =>
      this.#endpoints.create(call, input),
    )
    if (!result.created) throw result.conflict
    return { subscriptionId: result.subscriptionId }
  }

  /**
   * Like {@link NotificationClient.createSubscription}, but a conflict is a result instead of an error.
   *
   * @throws as {@link NotificationClient.createSubscription}, except `SubscriptionConflictError`
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
    return this.#call('tryCreateSubscription', options, (call) => this.#endpoints.create(call, input))
  }

  /**
   * Ends a subscription, by the route † of docs/service.md, Endpoints; the option `routes` sets another. Repeating the call
   * is safe.
   *
   * @throws `SubscriptionNotFoundError` when no active subscription has this id, or the service has another route
   */
  unsubscribe(subscriptionId: number, options?: CallOptions): Promise<void> {
    return this.#call('unsubscribe', options, (call) => this.#endpoints.unsubscribe(call, subscriptionId))
  }

  /**
   * Changes parameters of a subscription: later callbacks carry the new values, and pairs that are not named keep theirs
   * (docs/service.md, Rules). The route † is in docs/service.md, Endpoints; the option `routes` sets another. Repeating the
   * call is safe.
   *
   * @throws `SubscriptionNotFoundError` when no active subscription has this id, or the service has another route
   *
   * @example
   * ```ts
   * await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: newToken } })
   * ```
   */
  updateSubscriptionParameters(
    subscriptionId: number,
    input: UpdateSubscriptionParametersInput,
    options?: CallOptions,
  ): Promise<void> {
    return this.#call('updateSubscriptionParameters', options, (call) =>
      this.#endpoints.update(call, subscriptionId, input),
    )
  }

  /**
   * The client's bearer token, for the caller's own requests. A valid token comes from memory. Shortly before the token
   * expires, it is refreshed in the background (docs/client.md, Tokens).
   *
   * @throws `ConfigurationError` when the client authenticates with user name and password
   */
  getAccessToken(options?: CallOptions): Promise<string> {
    // The hot path: no async function, no timer, and one promise for all callers.
    const { authorizer } = this.#settings
    const held = options === undefined && !this.#isClosed ? authorizer.heldAccessToken?.() : undefined
    return (
      held ?? this.#call('getAccessToken', options, ({ deadline }) => accessTokenOf(authorizer, deadline))
    )
  }

  /**
   * Waits for the calls in flight, then closes the connections that the client opened itself; a given `dispatcher` stays
   * open. Later calls reject with a `ClosedError`. A script that never closes its client still exits.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#calls.whenIdle()
    await this.#settings.transport.close?.()
  }

  /** Same as {@link NotificationClient.close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /**
   * Makes a call, and publishes it on the tracing channel. An error gets its stack here, so that it shows the caller: a stack
   * has ten lines, which the functions below would fill, and the stack of a timer has no caller.
   */
  async #call<Result>(
    method: string,
    options: CallOptions | undefined,
    run: (call: Call) => Promise<Result>,
  ): Promise<Result> {
    const contextOf = (): { method: string; attempts: number; status?: number } => ({
      method,
      attempts: 0,
    })
    this.#calls.begin()
    try {
      return await traced(callChannel, contextOf, (context) =>
        withCall(this.#settingsFor(method, options), run, ({ attempts, status }) => {
          if (context !== undefined) Object.assign(context, { attempts }, status !== undefined && { status })
        }),
      )
    } catch (error) {
      if (error instanceof NotificationError && !withCallersStack.has(error)) {
        withCallersStack.add(error)
        Error.captureStackTrace(error)
      }
      throw error
    } finally {
      this.#calls.end()
    }
  }

  /** @throws `ClosedError`, or `InvalidRequestError` for unusable options */
  #settingsFor(method: string, options: CallOptions | undefined): CallSettings {
    const valid = options === undefined ? {} : validInput(method, callOptionsSchema, options)
    if (this.#isClosed) {
      throw new ClosedError(
        `${method} sent nothing: the client is closed. Make a new one, or close it later.`,
      )
    }
    const { authorizer, connections, log, transport } = this.#settings
    const { onResponse, signal, timeoutMs = this.#settings.timeoutMs } = valid
    const retry = retryPolicy(valid.retry, this.#settings.retry)
    // Not spread, which takes a quarter of a create's own time.
    return { method, timeoutMs, retry, signal, onResponse, authorizer, connections, log, transport }
  }
}

/** Errors that have got their stack. The failure of a token request is one error for every call that waits for the token. */
const withCallersStack = new WeakSet<NotificationError>()

/** Outside the class: bundlers rename self-referencing classes, which changes their name in logs. */
function clientWith(options: NotificationClientOptions): NotificationClient {
  return new NotificationClient(options)
}
