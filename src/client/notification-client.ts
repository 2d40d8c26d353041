/** The client: every call to the notification service. */
import { authorizerFor } from '../auth/authorizer.js'
import type { TokenAuthorizer } from '../auth/token-source.js'
import { ClosedError } from '../errors.js'
import type { Answer } from '../http/answer.js'
import { fetchTransport } from '../http/fetch.js'
import {
  Call,
  defaultRetryPolicy,
  type RetryPolicy,
  retryPolicy,
  type UnauthorizedRequest,
} from '../http/send.js'
import type { Transport } from '../http/transport.js'
import { UndiciTransport } from '../http/undici.js'
import { type Log, logOf } from '../logger.js'
import { callSafely, inFlight } from '../shared/calls.js'
import { takesInsecureLoopback } from '../shared/http-syntax.js'
import { channelFor, traced } from '../shared/tracing.js'
import {
  apiError,
  type CreatedSubscription,
  type CreateSubscriptionResult,
  createFailure,
  isNotFound,
  readCreateAnswer,
  readSubscriptionAnswer,
  summaryOf,
} from '../subscriptions/answers.js'
import { SubscriptionRequests } from '../subscriptions/requests.js'
import {
  type CreateSubscriptionInput,
  createSubscriptionInputSchema,
  loopbackSubscriptionInputSchema,
  subscriptionIdSchema,
  type UpdateSubscriptionParametersInput,
  updateSubscriptionParametersInputSchema,
  validInput,
} from '../subscriptions/schemas.js'
import { fromEnvironment } from './environment.js'
import {
  type CallOptions,
  callOptionsSchema,
  type NotificationClientOptions,
  validOptions,
} from './options.js'

const defaultTimeoutMs = 30_000

const callChannel = channelFor('call')

/**
 * A client of the notification service. Safe to share: make one per set of credentials and keep it.
 *
 * Every method rejects with a `NotificationError`, with the reason of the caller's own `signal`, or with the
 * error of the caller's own `auth.getAccessToken`. Errors and logs never contain credentials, tokens or the parameter values of
 * the call.
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
  readonly #requests: SubscriptionRequests
  readonly #inputSchema: typeof createSubscriptionInputSchema
  readonly #authorizer: TokenAuthorizer
  readonly #transport: Transport
  readonly #retry: RetryPolicy
  readonly #timeoutMs: number
  readonly #log: Log
  readonly #callsInFlight = inFlight()
  #isClosed = false
  /** Whether the unsubscribe route has answered 2xx: before that, a 404 does not prove that the subscription has ended. */
  #hasUnsubscribed = false

  /** @throws `ConfigurationError` that lists every problem of the options; nothing is sent */
  constructor(options: NotificationClientOptions) {
    const {
      allowInsecureLoopback,
      auth,
      baseUrl,
      ca,
      dispatcher,
      fetch,
      logger,
      retry,
      routes,
      timeoutMs,
      ...rest
    } = validOptions(options)
    // A copy, because the caller may change its own object.
    const headers = rest.headers && { ...rest.headers }
    this.#requests = new SubscriptionRequests({ baseUrl, routes, headers })
    this.#inputSchema = allowInsecureLoopback
      ? loopbackSubscriptionInputSchema
      : createSubscriptionInputSchema
    Object.defineProperty(this, takesInsecureLoopback, { value: allowInsecureLoopback === true })
    this.#transport = fetch ? fetchTransport(fetch) : new UndiciTransport({ dispatcher, ca })
    this.#retry = retryPolicy(retry, defaultRetryPolicy)
    this.#timeoutMs = timeoutMs ?? defaultTimeoutMs
    this.#log = logOf(logger)
    this.#authorizer = authorizerFor(auth, {
      transport: this.#transport,
      retry: this.#retry,
      timeoutMs: this.#timeoutMs,
      log: this.#log,
      gateway: headers && { origin: baseUrl.origin, headers },
    })
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
   * @throws `InvalidRequestError` or `ClosedError` before anything is sent; `TokenRequestError`, `ApiError`,
   * `ConnectionError`, `TimeoutError` when nothing was created; `ResponseValidationError` when the answer holds no
   * usable id, or did not come from the service
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
    return this.#create('tryCreateSubscription', input, options)
  }

  /**
   * Ends a subscription. Method and path come from the service's public developer pages (docs/service.md, Endpoints);
   * see the `routes` option.
   *
   * @throws `SubscriptionNotFoundError` when no active subscription has this id, or the service has another route
   * @throws `InvalidRequestError` or `ClosedError` before anything is sent; `TokenRequestError`, `ApiError`,
   * `ConnectionError`, `TimeoutError`, `ResponseValidationError`: repeating the call is safe
   */
  async unsubscribe(subscriptionId: number, options?: CallOptions): Promise<void> {
    const method = 'unsubscribe'
    await this.#call(method, options, async (call) => {
      const id = validInput(method, subscriptionIdSchema, subscriptionId)
      const answer = await this.#send(method, call, this.#requests.unsubscribe(id), options)
      // After a lost answer, a known route answers 404 because an earlier attempt of this call has ended the subscription.
      if (isNotFound(answer.status) && call.lostAttempts > 0 && this.#hasUnsubscribed) return
      readSubscriptionAnswer(answer, 'unsubscribe', id, call)
      this.#hasUnsubscribed = true
    })
  }

  /**
   * Changes parameters of a subscription: later callbacks carry the new values (docs/service.md, Rules). Pairs that
   * are not named keep their values. Method and path come from the service's public developer pages (docs/service.md,
   * Endpoints); see the `routes` option.
   *
   * @throws `SubscriptionNotFoundError` when no active subscription has this id, or the service has another route
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
    await this.#call(method, options, async (call) => {
      const id = validInput(method, subscriptionIdSchema, subscriptionId)
      const valid = validInput(method, updateSubscriptionParametersInputSchema, input)
      const answer = await this.#send(method, call, this.#requests.update(id, valid), options)
      readSubscriptionAnswer(answer, 'update', id, call)
    })
  }

  /**
   * The client's bearer token, for the caller's own requests. A valid token comes from memory. Shortly before the token
   * expires, it is refreshed in the background (docs/client.md, Tokens).
   *
   * @throws `InvalidRequestError` or `ClosedError` before anything is sent; `TokenRequestError`,
   * `ResponseValidationError`, `ConnectionError`, `TimeoutError`; `ConfigurationError` when the client authenticates
   * with user name and password
   */
  getAccessToken(options?: CallOptions): Promise<string> {
    // The hot path: no async function, no timer, and one promise for all callers.
    const held = options === undefined && !this.#isClosed ? this.#authorizer.heldAccessToken() : undefined
    return (
      held ?? this.#call('getAccessToken', options, ({ deadline }) => this.#authorizer.accessToken(deadline))
    )
  }

  /**
   * Waits for the calls in flight, then closes the connections that the client opened itself; a given `dispatcher` stays
   * open. Later calls reject with a `ClosedError`. A script that never closes its client still exits.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    await new Promise<void>((resolve) => this.#callsInFlight.whenIdle(resolve))
    await this.#transport.close()
  }

  /** Same as {@link NotificationClient.close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #create(
    method: string,
    input: CreateSubscriptionInput,
    options: CallOptions | undefined,
  ): Promise<CreateSubscriptionResult> {
    return this.#call(method, options, async (call) => {
      const valid = validInput(method, this.#inputSchema, input)
      const wanted = summaryOf(valid)
      const request = this.#requests.create(valid)
      try {
        return readCreateAnswer(await this.#send(method, call, request, options), wanted)
      } catch (error) {
        throw createFailure(error, wanted, call)
      }
    })
  }

  /**
   * Runs a call: counts it as in flight, and publishes it on the tracing channel. Every promise from here to the caller is
   * awaited, so that the stack of an error includes the caller's line.
   */
  async #call<Result>(
    method: string,
    options: CallOptions | undefined,
    run: (call: Call) => Promise<Result>,
  ): Promise<Result> {
    const contextOf = (): { method: string; attempts: number; status?: number } => ({ method, attempts: 0 })
    this.#callsInFlight.begin()
    try {
      return await traced(callChannel, contextOf, async (context) => {
        const call = this.#begin(method, options)
        try {
          return await run(call)
        } finally {
          call.end()
          const { attempts, status } = call
          if (context !== undefined) Object.assign(context, { attempts }, status !== undefined && { status })
        }
      })
    } finally {
      this.#callsInFlight.end()
    }
  }

  /** Sends the request of a call. Errors of the caller's `onResponse` are logged: they must not hide the call's result. */
  async #send(
    method: string,
    call: Call,
    request: UnauthorizedRequest,
    options: CallOptions | undefined,
  ): Promise<Answer> {
    const beganSince = performance.now()
    const answer = await call.send(request, apiError)
    const { onResponse } = options ?? {}
    if (onResponse !== undefined) {
      const { requestId, status } = answer
      const durationMs = Math.round(performance.now() - beganSince)
      void callSafely(
        () => onResponse({ status, requestId, attempts: call.attempts, durationMs }),
        (err) => this.#log('error', { event: 'on-response.failed', method, err }, 'onResponse failed'),
      )
    }
    return answer
  }

  /** @throws `ClosedError`, `InvalidRequestError` for unusable options, or the reason of an aborted signal */
  #begin(what: string, options: CallOptions | undefined): Call {
    const {
      retry,
      signal,
      timeoutMs = this.#timeoutMs,
    } = options === undefined ? {} : validInput(what, callOptionsSchema, options)
    if (this.#isClosed) {
      throw new ClosedError(`${what} sent nothing: the client is closed. Make a new one, or close it later.`)
    }
    return new Call({
      what,
      timeoutMs,
      signal,
      authorizer: this.#authorizer,
      transport: this.#transport,
      retry: retryPolicy(retry, this.#retry),
      log: this.#log,
    })
  }
}

/** Outside the class: bundlers rename self-referencing classes, which changes their name in logs. */
function clientWith(options: NotificationClientOptions): NotificationClient {
  return new NotificationClient(options)
}
