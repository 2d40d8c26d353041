/** Sends one request with retries: token, attempt, one new token after a 401, backoff, all within one deadline. */
import { type ConnectionError, type NotificationError, TimeoutError } from '../errors.js'
import type { Log } from '../logger.js'
import { jitteredBackoffMs } from '../shared/backoff.js'
import { isOutcomeOpen, isTurnedAway } from '../shared/status.js'
import { type Answer, type AnsweredRequest, answerOf } from './answer.js'
import { isTransient, toConnectionError } from './connection-error.js'
import { Deadline } from './deadline.js'
import type { Address, HttpRequest, HttpResponse, NoResponse, Transport } from './transport.js'

/** A request without its Authorization header. */
export interface UnauthorizedRequest extends AnsweredRequest, Pick<HttpRequest, 'method' | 'body'> {
  /** The media type of the body. Default: a form. */
  readonly contentType?: string | undefined
  /** Further headers of the caller. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Secrets in the request: no error shows them, even if the server returns them. */
  readonly secrets: readonly string[]
  /** Whether the request may be repeated after an unknown outcome. */
  readonly isRepeatable: boolean
}

export interface Authorization {
  /** The value of the header. */
  readonly header: string
  /** Texts that no error or log line may show. */
  readonly secrets: readonly string[]
}

export interface Authorizer {
  /** The authorization for the next request; no promise if it is available at once. */
  authorize(deadline: Deadline): Authorization | Promise<Authorization>
  /** After a 401: a new authorization to repeat the request with, or `undefined` if repeating would not help. */
  reauthorize(rejected: Authorization, deadline: Deadline): Promise<Authorization | undefined>
  /** Why a call still waits for its authorization. */
  missing?(): MissingToken
}

export interface MissingToken {
  /** A sentence for a `TimeoutError`, and what to do. */
  readonly words: string
  /** How the last attempt to get a token failed, if one did. */
  readonly lastFailure: Error | undefined
}

/** How failed attempts are repeated. All waiting happens within the call's `timeoutMs`. */
export interface RetryOptions {
  /** Number of attempts, the first included; the repeat after a 401 is not counted. Default: 3. */
  readonly maxAttempts?: number | undefined
  /** Upper bound of the wait before the second attempt, in milliseconds; it doubles each time. Default: 250. */
  readonly baseDelayMs?: number | undefined
  /** Upper bound of any wait except the server's `Retry-After`, in milliseconds. Default: 8,000. */
  readonly maxDelayMs?: number | undefined
}

export interface RetryPolicy {
  readonly maxAttempts: number
  readonly baseDelayMs: number
  readonly maxDelayMs: number
}

export const defaultRetryPolicy: RetryPolicy = { maxAttempts: 3, baseDelayMs: 250, maxDelayMs: 8_000 }

/** The policy of the options; `base` has the values of missing fields. */
export function retryPolicy(options: RetryOptions | undefined, base: RetryPolicy): RetryPolicy {
  return {
    maxAttempts: options?.maxAttempts ?? base.maxAttempts,
    baseDelayMs: options?.baseDelayMs ?? base.baseDelayMs,
    maxDelayMs: options?.maxDelayMs ?? base.maxDelayMs,
  }
}

export interface SendOptions {
  /** What is called, e.g. a method's name: the first words of a `TimeoutError`. */
  readonly what: string
  readonly timeoutMs: number
  /** Aborting it ends the call with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  readonly authorizer: Authorizer
  readonly transport: Transport
  readonly retry: RetryPolicy
  readonly log: Log
}

/** The headers of every request, except `content-type`. Not spread: undici is slower with spread objects. */
function headersWith(authorization: string): Record<string, string> {
  return {
    // Every answer with a body is JSON (docs/service.md, Endpoints), which no transport here decompresses.
    accept: 'application/json',
    'accept-encoding': 'identity',
    authorization,
    // Some firewalls refuse requests without a user agent. Has the version of package.json.
    'user-agent': 'notification-subscriber/0.3.0',
  }
}

/** The headers that the client sets: a caller cannot set them. */
export const requestHeaderNames = [...Object.keys(headersWith('')), 'content-type']

/** One call: its requests, their repeats, its time limit and its counters. */
export class Call {
  readonly deadline: Deadline
  readonly #options: SendOptions
  #address: Address | undefined
  #attempts = 0
  #attemptedSince = 0
  #lostAttempts = 0
  #status: number | undefined
  #lastFailure: NotificationError | undefined

  /** @throws the reason of a signal that is aborted already */
  constructor(options: SendOptions) {
    this.#options = options
    const { signal, timeoutMs } = options
    this.deadline = new Deadline({ signal, timeoutMs, timeoutError: (phase) => this.#timeoutError(phase) })
  }

  /** Number of requests, repeats included, token requests not. */
  get attempts(): number {
    return this.#attempts
  }

  /** When the last attempt began, on the monotonic clock. */
  get attemptedSince(): number {
    return this.#attemptedSince
  }

  /** Number of attempts that were sent and whose outcome is unknown. */
  get lostAttempts(): number {
    return this.#lostAttempts
  }

  /** HTTP status of the last attempt's answer. */
  get status(): number | undefined {
    return this.#status
  }

  /** The last attempt's failure, if another attempt follows. */
  get lastFailure(): NotificationError | undefined {
    return this.#lastFailure
  }

  /**
   * Sends a request, and repeats it according to the options. The caller interprets the answer's status.
   *
   * @param errorOf - makes the error for an answer with an error status: the `cause` if a later attempt runs out of time
   * @throws `ConnectionError` when the last attempt got no answer, what the authorizer throws, or the deadline's reason
   */
  async send(request: UnauthorizedRequest, errorOf: (answer: Answer) => NotificationError): Promise<Answer> {
    const { authorizer, log, retry } = this.#options
    const { deadline } = this
    const { address, method, isRepeatable } = request
    const url = address.shown
    this.#address = address
    let authorization = await authorizer.authorize(deadline)
    let rejected: Authorization | undefined
    let failures = 0
    for (;;) {
      const outcome = await this.#attempt(request, authorization, rejected)

      if (isAnswer(outcome) && outcome.status === 401 && rejected === undefined) {
        rejected = authorization
        const another = await authorizer.reauthorize(rejected, deadline)
        if (another !== undefined) {
          log('info', { event: 'token.rejected', method, url }, 'Access token rejected; repeating')
          authorization = another
          continue
        }
      }

      failures += 1
      const delayMs = delayBeforeRepeat(outcome, failures, isRepeatable, retry)
      if (delayMs === undefined || performance.now() + delayMs >= deadline.endsAt) {
        if (isAnswer(outcome)) return outcome
        throw outcome
      }
      const fields = { method, url, attempt: this.#attempts, delayMs: Math.round(delayMs) }
      log('info', { event: 'request.retried', ...fields }, 'Request will be repeated')
      this.#lastFailure = isAnswer(outcome) ? errorOf(outcome) : outcome
      await deadline.sleep(delayMs)
    }
  }

  /** Ends the call: nothing aborts it any more. */
  end(): void {
    this.deadline.end()
  }

  /**
   * @param rejected - the authorization of an earlier 401: its secrets are redacted, too
   * @throws the deadline's reason, or an error of this package that is not about the network
   */
  async #attempt(
    request: UnauthorizedRequest,
    authorization: Authorization,
    rejected: Authorization | undefined,
  ): Promise<Answer | ConnectionError> {
    const { log, transport } = this.#options
    const { address, body, method } = request
    const secrets = () => [...request.secrets, ...authorization.secrets, ...(rejected?.secrets ?? [])]
    this.#attempts += 1
    this.#attemptedSince = performance.now()
    this.#status = undefined
    const shown = () => ({
      method,
      url: address.shown,
      attempt: this.#attempts,
      durationMs: Math.round(performance.now() - this.#attemptedSince),
    })
    this.deadline.checkClock()
    if (this.deadline.aborted) throw this.deadline.reason
    const headers = headersOf(request, authorization)
    const outcome = answered(await transport.send({ method, address, headers, body }, this.deadline))
    if (isAnswered(outcome)) {
      const answer = answerOf(request, outcome, secrets)
      const { requestId, status } = answer
      this.#status = status
      if (isOutcomeOpen(status)) this.#lostAttempts += 1
      const fields = { ...shown(), status, ...(requestId !== undefined && { requestId }) }
      log('debug', { event: 'request.answered', ...fields }, 'Request answered')
      return answer
    }
    const { error, mayHaveLeft } = outcome
    if (mayHaveLeft) this.#lostAttempts += 1
    if (this.deadline.aborted) throw this.deadline.reason
    const failure = toConnectionError(error, { host: address.host, secrets: secrets() }, mayHaveLeft)
    // A stack has ten lines: without the topmost ones the caller's line is always among them.
    Error.captureStackTrace(failure, this.#attempt)
    log('warn', { event: 'request.failed', ...shown(), err: failure }, 'Request got no answer')
    return failure
  }

  #timeoutError(phase: TimeoutError['phase']): TimeoutError {
    const { authorizer, timeoutMs, what } = this.#options
    const missing = phase === 'token' ? authorizer.missing?.() : undefined
    const cause = missing === undefined ? this.#lastFailure : missing.lastFailure
    const message =
      `${what} took longer than ${Math.round(timeoutMs)} ms: ${missing?.words ?? this.#missing(phase)}` +
      (cause === undefined ? '' : ` The last attempt before that failed: ${cause.message}`)
    return new TimeoutError(message, { timeoutMs, phase }, cause && { cause })
  }

  #missing(phase: TimeoutError['phase']): string {
    const { proxy } = this.#options.transport
    switch (phase) {
      case 'connection':
        return (
          `this attempt was not sent, because no connection to ${this.#address?.host} was made or became free. ` +
          'If many calls are made at once, make fewer at a time, or allow more time with `timeoutMs`; ' +
          `if not, check the network, or ${proxy === undefined ? 'whether a proxy is needed' : `the proxy ${proxy}`}.`
        )
      case 'backoff':
        return `another attempt at ${this.#address?.shown} was about to follow. Allow more time with \`timeoutMs\`, or shorter waits with \`retry\`.`
      default:
        return `the request to ${this.#address?.shown} was sent and not answered. The server may be slow: allow more time with \`timeoutMs\`.`
    }
  }
}

function headersOf(
  { body, contentType = 'application/x-www-form-urlencoded', headers }: UnauthorizedRequest,
  { header: authorization }: Authorization,
): Record<string, string> {
  const own = headersWith(authorization)
  if (body !== undefined) own['content-type'] = contentType
  return headers === undefined ? own : { ...headers, ...own }
}

/** A caller's `fetch` may resolve without a status: a mock's mistake, or a redirect that a browser hides. */
function answered(outcome: HttpResponse | NoResponse): HttpResponse | NoResponse {
  if (!isAnswered(outcome) || (Number.isInteger(outcome.status) && outcome.status >= 100)) return outcome
  return { error: new Error('the answer is no response: it has no HTTP status'), mayHaveLeft: true }
}

function isAnswered(outcome: HttpResponse | NoResponse): outcome is HttpResponse {
  return 'status' in outcome
}

/** How long to wait before the request is repeated, or `undefined` if it is not repeated. */
function delayBeforeRepeat(
  outcome: Answer | ConnectionError,
  failures: number,
  isRepeatable: boolean,
  { maxAttempts, baseDelayMs, maxDelayMs }: RetryPolicy,
): number | undefined {
  const again = isLost(outcome) ? isRepeatable : isWorthAnother(outcome)
  if (!again || failures >= maxAttempts) return undefined
  const retryAfterMs = isAnswer(outcome) ? outcome.retryAfterMs : undefined
  return retryAfterMs ?? jitteredBackoffMs(failures, { firstMs: baseDelayMs, maxMs: maxDelayMs })
}

function isAnswer(outcome: Answer | ConnectionError): outcome is Answer {
  return 'status' in outcome
}

function isLost(outcome: Answer | ConnectionError): boolean {
  return isAnswer(outcome) ? isOutcomeOpen(outcome.status) : outcome.requestSent
}

/** Whether another attempt may succeed after one that had no effect. */
function isWorthAnother(outcome: Answer | ConnectionError): boolean {
  return isAnswer(outcome) ? isTurnedAway(outcome.status) : isTransient(outcome)
}
