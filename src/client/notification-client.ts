/** What a subscriber can do with the notification service. */
import { authorizerFor } from '../auth/auth.js'
import { sendAuthorized } from '../auth/authorized-send.js'
import type { Authorizer } from '../auth/authorizer.js'
import type { SubscriptionConflictError } from '../errors.js'
import { type CallOptions, Deadline } from '../http/deadline.js'
import { FetchTransport } from '../http/fetch-transport.js'
import { defaultRetryPolicy, noRetries, type RetryOptions, type RetryPolicy } from '../http/retry.js'
import type { Answer, Progress, SendOptions } from '../http/send.js'
import type { Transport, UnauthorizedRequest } from '../http/transport.js'
import { UndiciTransport } from '../http/undici-transport.js'
import { type Log, logOf } from '../logger.js'
import { inFlight } from '../shared/in-flight.js'
import { readCreateAnswer, readSubscriptionAnswer, summaryOf } from '../subscriptions/answers.js'
import {
  type CreateSubscriptionInput,
  createSubscriptionInputSchema,
  loopbackSubscriptionInputSchema,
} from '../subscriptions/create-input.js'
import {
  createRequest,
  createUrl,
  type Routes,
  unsubscribeRequest,
  updateRequest,
} from '../subscriptions/requests.js'
import { createFailure } from '../subscriptions/unknown-outcome.js'
import {
  subscriptionIdSchema,
  type UpdateSubscriptionParametersInput,
  updateSubscriptionParametersInputSchema,
} from '../subscriptions/update-input.js'
import { invalidRequest, validated } from './call-input.js'
import { callOptionsSchema } from './client-option-schemas.js'
import { type NotificationClientOptions, optionsFromEnv, validateClientOptions } from './client-options.js'

/** A subscription that now exists (interface.md section 4.2). */
export interface CreatedSubscription {
  /** The service's identifier; needed to unsubscribe and to update, so keep it. */
  readonly subscriptionId: number
}

/** Either outcome of {@link NotificationClient.tryCreateSubscription}. */
export type CreateSubscriptionResult =
  | {
      /** A subscription now exists. */
      readonly created: true
      /** The service's identifier; needed to unsubscribe and to update, so keep it. */
      readonly subscriptionId: number
    }
  | {
      /** Nothing was created or deleted. */
      readonly created: false
      /** What `createSubscription` would have thrown. */
      readonly conflict: SubscriptionConflictError
    }

const defaultTimeoutMs = 30_000

/**
 * A client of the notification service. Safe to share: make one per set of credentials and keep it.
 *
 * Every method rejects with a `NotificationError`, with the reason of the caller's own `signal`, or with what the
 * caller's own `auth.getAccessToken` threw.
 * Errors and logs never contain credentials, tokens or parameter values.
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
  readonly #baseUrl: string
  readonly #createUrl: string
  readonly #routes: Routes
  readonly #inputSchema: typeof createSubscriptionInputSchema
  readonly #authorizer: Authorizer
  readonly #transport: Transport
  readonly #retry: RetryPolicy
  readonly #timeoutMs: number
  readonly #log: Log
  readonly #underWay = inFlight()
  #closed = false

  /** @throws `ConfigurationError` listing everything that is wrong with the options; nothing is sent. */
  constructor(options: NotificationClientOptions) {
    validateClientOptions(options)
    const { auth, baseUrl, dispatcher, fetch, timeoutMs = defaultTimeoutMs } = options
    this.#baseUrl = String(baseUrl).replace(/\/+$/, '')
    this.#createUrl = createUrl(this.#baseUrl)
    this.#routes = options.routes ?? {}
    this.#inputSchema = options.allowInsecureLoopback
      ? loopbackSubscriptionInputSchema
      : createSubscriptionInputSchema
    this.#transport = fetch ? new FetchTransport(fetch) : new UndiciTransport(dispatcher)
    this.#retry = retryPolicy(options.retry)
    this.#timeoutMs = timeoutMs
    this.#log = logOf(options.logger)
    const requests = { transport: this.#transport, retry: this.#retry, timeoutMs, log: this.#log }
    this.#authorizer = authorizerFor(auth, requests)
  }

  /**
   * A client from `NOTIFICATION_BASE_URL`, `NOTIFICATION_AUTH_URL`, `NOTIFICATION_DOMAIN`,
   * `NOTIFICATION_CLIENT_ID` and `NOTIFICATION_CLIENT_SECRET`.
   *
   * @param env - where to read them; default `process.env`
   * @param options - everything else
   * @throws `ConfigurationError` naming every variable that is missing, or whose value cannot work
   */
  static fromEnv(
    env: Readonly<Record<string, string | undefined>> = process.env,
    options?: Omit<NotificationClientOptions, 'baseUrl' | 'auth'>,
  ): NotificationClient {
    return clientWith({ ...options, ...optionsFromEnv(env) })
  }

  /**
   * Creates a subscription (interface.md section 4.2).
   *
   * @throws `SubscriptionConflictError` on 409: one exists for some of these types, users and callback URL.
   * @throws `OutcomeUnknownError` when the answer was lost: creating again with `recreateIfExists: true` settles it.
   * @throws `InvalidRequestError` before anything is sent; `TokenRequestError`, `ApiError`, `ConnectionError`,
   * `TimeoutError` when nothing was created; `ResponseValidationError` when the answer holds no usable id.
   */
  createSubscription(input: CreateSubscriptionInput, options?: CallOptions): Promise<CreatedSubscription> {
    return this.#create('createSubscription', input, options, createdOrThrown)
  }

  /**
   * Like {@link NotificationClient.createSubscription}, but a conflict is a result and not an error. Other failures
   * still throw.
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
    return this.#create('tryCreateSubscription', input, options, createdOrConflict)
  }

  /**
   * Ends a subscription. Its method and path come from the service's public developer pages, not from
   * interface.md (section 4.3); see the `routes` option.
   *
   * @throws `SubscriptionNotFoundError` when there is none with this id.
   * @throws `InvalidRequestError` before anything is sent; `TokenRequestError`, `ApiError`, `ConnectionError`,
   * `TimeoutError`: repeating the call is safe.
   */
  async unsubscribe(subscriptionId: number, options?: CallOptions): Promise<void> {
    const id = validated('unsubscribe', subscriptionIdSchema, subscriptionId)
    const request = unsubscribeRequest(this.#baseUrl, this.#routes.unsubscribe, id)
    const progress: Progress = { lostAttempts: 0 }
    const answer = await this.#send('unsubscribe', request, options, { repeatable: true, progress })
    // An earlier attempt of this call, whose answer was lost, has done it.
    if (answer.status === 404 && progress.lostAttempts > 0) return
    readSubscriptionAnswer(answer, id, 'unsubscribe', progress)
  }

  /**
   * Changes parameters of a subscription: later callbacks carry the new values (interface.md section 3, rule 3).
   * Pairs that are not named keep their values. Method and path come from the service's public developer pages;
   * see the `routes` option.
   *
   * @throws `SubscriptionNotFoundError` when there is none with this id.
   * @throws `InvalidRequestError` before anything is sent; `TokenRequestError`, `ApiError`, `ConnectionError`,
   * `TimeoutError`: repeating the call is safe.
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
    const id = validated('updateSubscriptionParameters', subscriptionIdSchema, subscriptionId)
    const valid = validated('updateSubscriptionParameters', updateSubscriptionParametersInputSchema, input)
    const request = updateRequest(this.#baseUrl, this.#routes.update, id, valid)
    const progress: Progress = { lostAttempts: 0 }
    const answer = await this.#send('updateSubscriptionParameters', request, options, {
      repeatable: true,
      progress,
    })
    readSubscriptionAnswer(answer, id, 'update the subscription', progress)
  }

  /**
   * The bearer token that the client uses, for a caller's own requests: from memory while it is valid, with a
   * refresh in the background when its end is near.
   *
   * @throws `TokenRequestError`, `ResponseValidationError`, `ConnectionError`, `TimeoutError`;
   * `ConfigurationError` when the client authenticates with user name and password.
   */
  getAccessToken(options?: CallOptions): Promise<string> {
    // The hot path: no async function, no timer, and one promise for everybody.
    const held = options === undefined && !this.#closed ? this.#authorizer.heldAccessToken() : undefined
    return held ?? this.#accessToken(options)
  }

  /**
   * Lets the calls under way finish and closes the connections that the client opened itself, never a
   * dispatcher that it was given. Later calls are refused. A script that forgets it still exits.
   */
  async close(): Promise<void> {
    this.#closed = true
    await new Promise<void>(this.#underWay.whenOver)
    await this.#transport.close()
  }

  /** Same as {@link NotificationClient.close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /**
   * @param resultOf - a function that many calls share, rather than one more async function: what a call waits in is
   * moved by the garbage collector while it waits
   */
  async #create<Result>(
    method: string,
    input: CreateSubscriptionInput,
    options: CallOptions | undefined,
    resultOf: (answer: number | SubscriptionConflictError) => Result,
  ): Promise<Result> {
    const valid = validated(method, this.#inputSchema, input)
    const summary = summaryOf(valid)
    const request = createRequest(this.#createUrl, valid)
    const progress: Progress = { lostAttempts: 0 }
    const repeatable = valid.recreateIfExists === true
    let answer: number | SubscriptionConflictError
    try {
      answer = readCreateAnswer(await this.#send(method, request, options, { repeatable, progress }), summary)
    } catch (error) {
      throw createFailure(error, summary, progress)
    }
    return resultOf(answer)
  }

  /** Not async: `sendAuthorized` ends the call's deadline. */
  #send(
    method: string,
    request: UnauthorizedRequest,
    options: CallOptions | undefined,
    { repeatable, progress }: Pick<SendOptions, 'repeatable' | 'progress'>,
  ): Promise<Answer> {
    return sendAuthorized(request, this.#authorizer, {
      transport: this.#transport,
      retry: this.#retry,
      log: this.#log,
      deadline: this.#begin(method, options),
      repeatable,
      progress,
    })
  }

  async #accessToken(options: CallOptions | undefined): Promise<string> {
    const deadline = this.#begin('getAccessToken', options)
    try {
      return await this.#authorizer.accessToken(deadline)
    } finally {
      deadline.end()
    }
  }

  /** A call begins. It is under way until its deadline is ended. */
  #begin(method: string, options: CallOptions | undefined): Deadline {
    const { signal, timeoutMs } = options === undefined ? {} : validated(method, callOptionsSchema, options)
    if (this.#closed)
      throw invalidRequest(method, [{ path: [], message: 'the client is closed: make a new one' }])
    const deadline = new Deadline(timeoutMs ?? this.#timeoutMs, { signal, onEnd: this.#underWay.end })
    this.#underWay.begin()
    return deadline
  }
}

/** Not in the class: a build would rename a class that names itself, and its name is what logs show. */
function clientWith(options: NotificationClientOptions): NotificationClient {
  return new NotificationClient(options)
}

function createdOrThrown(answer: number | SubscriptionConflictError): CreatedSubscription {
  if (typeof answer === 'number') return { subscriptionId: answer }
  throw answer
}

function createdOrConflict(answer: number | SubscriptionConflictError): CreateSubscriptionResult {
  return typeof answer === 'number'
    ? { created: true, subscriptionId: answer }
    : { created: false, conflict: answer }
}

function retryPolicy(retry: RetryOptions | false | undefined): RetryPolicy {
  if (retry === false) return noRetries
  const { maxAttempts, baseDelayMs, maxDelayMs } = retry ?? {}
  return {
    maxAttempts: maxAttempts ?? defaultRetryPolicy.maxAttempts,
    baseDelayMs: baseDelayMs ?? defaultRetryPolicy.baseDelayMs,
    maxDelayMs: maxDelayMs ?? defaultRetryPolicy.maxDelayMs,
  }
}
