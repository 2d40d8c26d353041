/** The calls of one client: each begins with a check and a deadline, counts as in flight, and is sent authorized. */
import { authorizerFor } from '../auth/auth.js'
import { sendAuthorized } from '../auth/authorized-send.js'
import type { Authorizer } from '../auth/authorizer.js'
import { ClosedError } from '../errors.js'
import { Deadline } from '../http/deadline.js'
import { FetchTransport } from '../http/fetch-transport.js'
import { defaultRetryPolicy, type RetryPolicy, retryPolicy } from '../http/retry.js'
import type { Answer, SendOptions } from '../http/send.js'
import type { Transport, UnauthorizedRequest } from '../http/transport.js'
import { UndiciTransport } from '../http/undici-transport.js'
import { type Log, logOf } from '../logger.js'
import { inFlight } from '../shared/in-flight.js'
import { apiError } from '../subscriptions/any-answer.js'
import { validInput } from './call-input.js'
import { type CallOptions, callOptionsSchema } from './call-options.js'
import type { ValidClientOptions } from './option-schemas.js'

const defaultTimeoutMs = 30_000

/** A call that has begun: it is in flight until its deadline is ended. */
interface Call {
  readonly deadline: Deadline
  readonly retry: RetryPolicy
}

export class Calls {
  readonly #authorizer: Authorizer
  readonly #transport: Transport
  readonly #retry: RetryPolicy
  readonly #timeoutMs: number
  readonly #log: Log
  readonly #inFlight = inFlight()
  #isClosed = false

  constructor({ auth, ca, dispatcher, fetch, logger, retry, timeoutMs }: ValidClientOptions) {
    this.#transport = fetch ? new FetchTransport(fetch) : new UndiciTransport({ dispatcher, ca })
    this.#retry = retryPolicy(retry, defaultRetryPolicy)
    this.#timeoutMs = timeoutMs ?? defaultTimeoutMs
    this.#log = logOf(logger)
    this.#authorizer = authorizerFor(auth, {
      transport: this.#transport,
      retry: this.#retry,
      timeoutMs: this.#timeoutMs,
      log: this.#log,
    })
  }

  /**
   * Makes a subscription call.
   *
   * @param method - the name of the client's method, for errors
   * @param details.attempt - what is tried, as the rest of a sentence
   */
  send(
    method: string,
    request: UnauthorizedRequest,
    options: CallOptions | undefined,
    { attempt, ...details }: Pick<SendOptions, 'repeatable' | 'progress'> & { attempt: string },
  ): Promise<Answer> {
    const { deadline, retry } = this.#begin(method, options)
    // `sendAuthorized` ends the deadline.
    return sendAuthorized(request, this.#authorizer, {
      transport: this.#transport,
      log: this.#log,
      deadline,
      retry,
      errorOf: (answer) => apiError(answer, attempt),
      ...details,
    })
  }

  /** An access token that needs no waiting, as a promise made beforehand. */
  heldAccessToken(): Promise<string> | undefined {
    return this.#isClosed ? undefined : this.#authorizer.heldAccessToken()
  }

  async accessToken(method: string, options: CallOptions | undefined): Promise<string> {
    const { deadline } = this.#begin(method, options)
    try {
      return await this.#authorizer.accessToken(deadline)
    } finally {
      deadline.end()
    }
  }

  /** Refuses further calls, waits for those in flight, and closes the connections that were opened for them. */
  async close(): Promise<void> {
    this.#isClosed = true
    await new Promise<void>(this.#inFlight.whenOver)
    await this.#transport.close()
  }

  /** @throws `ClosedError`, or `InvalidRequestError` for options that cannot work */
  #begin(method: string, options: CallOptions | undefined): Call {
    const { signal, timeoutMs, retry } =
      options === undefined ? {} : validInput(method, callOptionsSchema, options)
    if (this.#isClosed) {
      throw new ClosedError(
        `${method} sent nothing: the client is closed. Make a new one, or close it later.`,
      )
    }
    const deadline = new Deadline(timeoutMs ?? this.#timeoutMs, {
      what: method,
      signal,
      onEnd: this.#inFlight.end,
    })
    this.#inFlight.begin()
    return { deadline, retry: retry === undefined ? this.#retry : retryPolicy(retry, this.#retry) }
  }
}
