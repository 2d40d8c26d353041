/** One call: its requests with token, one new token after a 401, repeats and backoff, all within one deadline. */
import { type ConnectionError, type NotificationError, TimeoutError } from '../errors.js'
import { callLogged, type Log } from '../logger.js'
import { redact, redactTokens } from '../shared/redact.js'
import { isBusy, isCreated, isOutcomeOpen, isUnauthorized } from '../shared/statuses.js'
import { excerpt } from '../shared/text.js'
import { parseJson, validate } from '../shared/validation.js'
import { backoffMs } from '../shared/waits.js'
import { isTransient, toConnectionError } from './connection-error.js'
import { type Awaited, Deadline } from './deadline.js'
import type { Address, Answer, HttpRequest, HttpResponse, Transport } from './exchange.js'
import { intermediaryOf } from './intermediary.js'

/** A request without its Authorization header. */
export interface UnauthorizedRequest extends Pick<HttpRequest, 'method' | 'address' | 'body'> {
  /** The media type of the body. Default: a form. */
  readonly contentType?: string | undefined
  /** Further headers of the caller. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Secrets in the request: no error shows them, even if the server returns them. */
  readonly secrets: readonly string[]
  /** Secrets in the body of an answer, so that no log line shows one that a header repeats. */
  readonly secretsIn?: (body: string) => readonly string[]
  /** Whether the request may be repeated after an unknown outcome. */
  readonly isRepeatable: boolean
  /** As in {@link Answer}. */
  readonly action: string
}

export interface Authorization {
  /** The value of the header, if there is one. */
  readonly header: string | undefined
  /** Texts that no error or log line may show. */
  readonly secrets: readonly string[]
  /** The token that is in the header, if one is. */
  readonly accessToken?: string
}

export interface Authorizer {
  /** The authorization for the next request; no promise if it is available at once. */
  authorize(deadline: Deadline): Authorization | Promise<Authorization>
  /** After a 401: a new authorization to repeat the request with, or `undefined` if repeating would not help. */
  reauthorize?(rejected: Authorization, deadline: Deadline): Promise<Authorization | undefined>
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

export type RetryPolicy = { readonly [Field in keyof RetryOptions]-?: number }

export const defaultRetryPolicy: RetryPolicy = { maxAttempts: 3, baseDelayMs: 250, maxDelayMs: 8_000 }

/** The policy of the options; `base` has the values of missing fields. */
export function retryPolicy(options: RetryOptions | undefined, base: RetryPolicy): RetryPolicy {
  return {
    maxAttempts: options?.maxAttempts ?? base.maxAttempts,
    baseDelayMs: options?.baseDelayMs ?? base.baseDelayMs,
    maxDelayMs: options?.maxDelayMs ?? base.maxDelayMs,
  }
}

/** The service's last answer to a call, a success or not. */
export interface ResponseSummary {
  /** HTTP status. */
  readonly status: number
  /** The service's id of the request, such as `x-request-id` (docs/errors.md, Request ids). */
  readonly requestId: string | undefined
  /** The number of requests to the service, repeats included. */
  readonly attempts: number
  /** How long the call took until this answer, token and retries included, in milliseconds. */
  readonly durationMs: number
}

export interface CallSettings {
  /** What is called, e.g. a method's name: the first words of a `TimeoutError`. */
  readonly method: string
  readonly timeoutMs: number
  /** Aborting it ends the call with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  readonly onResponse?: ((response: ResponseSummary) => void) | undefined
  readonly authorizer: Authorizer
  readonly transport: Transport
  readonly retry: RetryPolicy
  readonly log: Log
}

/** The headers of every request. Not spread: undici is slower with spread objects. */
function ownHeaders(): Record<string, string> {
  return {
    // Every answer with a body is JSON (docs/service.md, Endpoints), which no transport here decompresses.
    accept: 'application/json',
    'accept-encoding': 'identity',
    // Some firewalls refuse requests without a user agent. Has the version of package.json.
    'user-agent': 'notification-subscriber/0.5.0',
  }
}

/** The headers that the client sets: a caller cannot set them. */
export const requestHeaderNames = [...Object.keys(ownHeaders()), 'authorization', 'content-type']

/** A call in flight; only {@link withCall} makes one. */
export type Call = Readonly<RunningCall>

/** `run` sends the requests, `onEnd` gets the ended call. @throws what `run` throws, or the reason of an aborted signal */
export async function withCall<Result>(
  settings: CallSettings,
  run: (call: Call) => Promise<Result>,
  onEnd?: (call: Call) => void,
): Promise<Result> {
  const call = new RunningCall(settings)
  try {
    return await run(call)
  } finally {
    call.deadline.end()
    onEnd?.(call)
  }
}

class RunningCall {
  readonly method: string
  readonly deadline: Deadline
  /** Number of requests, repeats included, token requests not. */
  attempts = 0
  /** When the last attempt began, on the monotonic clock. */
  attemptedSince = 0
  /** Number of attempts that were sent and whose outcome is unknown. */
  lostAttempts = 0
  /** How many of them were answered 503 or 408. */
  busyAttempts = 0
  /** HTTP status of the last attempt's answer. */
  status: number | undefined
  /** The last attempt's failure, if another attempt follows. */
  lastFailure: NotificationError | undefined
  readonly #beganSince = performance.now()
  readonly #settings: CallSettings
  #address: Address | undefined

  constructor(settings: CallSettings) {
    this.#settings = settings
    const { method, signal, timeoutMs } = settings
    this.method = method
    this.deadline = new Deadline(timeoutMs, signal, (awaited) => this.#timeoutError(awaited))
  }

  /**
   * Sends a request, and repeats it according to the options. The caller interprets the answer's status.
   *
   * @param errorOf - makes the error for an answer with an error status: the `cause` if a later attempt runs out of time
   * @throws `ConnectionError` when the last attempt got no answer, what the authorizer throws, or the deadline's reason
   */
  async send(request: UnauthorizedRequest, errorOf: (answer: Answer) => NotificationError): Promise<Answer> {
    const { authorizer, log, retry } = this.#settings
    const { deadline } = this
    const { address, isRepeatable, method } = request
    const url = address.shown
    this.#address = address
    let authorization = await authorizer.authorize(deadline)
    let rejected: Authorization | undefined
    let failures = 0
    for (;;) {
      const outcome = await this.#attempt(request, authorization, rejected)

      if ('status' in outcome && isUnauthorized(outcome.status) && rejected === undefined) {
        rejected = authorization
        const another = await authorizer.reauthorize?.(rejected, deadline)
        if (another !== undefined) {
          log('info', { event: 'token.rejected', method, url }, 'Access token rejected; repeating')
          authorization = another
          continue
        }
      }

      failures += 1
      const delayMs = delayBeforeRepeat(outcome, failures, isRepeatable, retry)
      if (delayMs === undefined || performance.now() + delayMs >= deadline.endsAt) {
        if (!('status' in outcome)) throw outcome
        this.#report(outcome)
        return outcome
      }
      const fields = { method, url, attempt: this.attempts, delayMs: Math.round(delayMs) }
      log('info', { event: 'request.retried', ...fields }, 'Request will be repeated')
      this.lastFailure = 'status' in outcome ? errorOf(outcome) : outcome
      await deadline.sleep(delayMs)
    }
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
    const { log, transport } = this.#settings
    const { address, body, method } = request
    const secrets = () => [...request.secrets, ...authorization.secrets, ...(rejected?.secrets ?? [])]
    this.attempts += 1
    this.attemptedSince = performance.now()
    this.status = undefined
    const shown = () => ({
      method,
      url: address.shown,
      attempt: this.attempts,
      durationMs: Math.round(performance.now() - this.attemptedSince),
    })
    this.deadline.checkClock()
    if (this.deadline.aborted) throw this.deadline.reason
    const headers = headersOf(request, authorization)
    const outcome = await transport.send({ method, address, headers, body }, this.deadline)
    if ('status' in outcome) {
      const answer = answerOf(request, outcome, secrets)
      const { requestId, status } = answer
      this.status = status
      if (isOutcomeOpen(status)) this.lostAttempts += 1
      if (isOutcomeOpen(status) && isBusy(status)) this.busyAttempts += 1
      const fields = { ...shown(), status, ...(requestId !== undefined && { requestId }) }
      log('debug', { event: 'request.answered', ...fields }, 'Request answered')
      return answer
    }
    const { error, requestSent } = outcome
    if (requestSent) this.lostAttempts += 1
    if (this.deadline.aborted) throw this.deadline.reason
    const failure = toConnectionError(
      error,
      { host: address.host, proxy: transport.proxy, secrets: secrets() },
      requestSent,
    )
    log('warn', { event: 'request.failed', ...shown(), err: failure }, 'Request got no answer')
    return failure
  }

  /** Errors of the caller's `onResponse` are logged: they must not hide the call's result. */
  #report({ requestId, status }: Answer): void {
    const { log, onResponse, method } = this.#settings
    if (onResponse === undefined) return
    const durationMs = Math.round(performance.now() - this.#beganSince)
    void callLogged(log, { event: 'on-response.failed', method }, 'onResponse failed', () =>
      onResponse({ status, requestId, attempts: this.attempts, durationMs }),
    )
  }

  /** @param awaited - `undefined` if our own work kept the process busy: the next request was not sent */
  #timeoutError(awaited: Awaited | undefined): TimeoutError {
    const { method } = this.#settings
    const { timeoutMs } = this.deadline
    const phase = awaited?.phase ?? 'connection'
    const missing = awaited?.missing?.() ?? { words: this.#missing(phase), lastFailure: this.lastFailure }
    const cause = missing.lastFailure
    const message =
      `${method} took longer than ${Math.round(timeoutMs)} ms: ${missing.words}` +
      (cause === undefined ? '' : ` The last attempt before that failed: ${cause.message}`)
    return new TimeoutError(message, { timeoutMs, phase }, cause && { cause })
  }

  #missing(phase: TimeoutError['phase']): string {
    const { proxy } = this.#settings.transport
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
  const own = ownHeaders()
  if (authorization !== undefined) own.authorization = authorization
  if (body !== undefined) own['content-type'] = contentType
  return headers === undefined ? own : { ...headers, ...own }
}

/** How long to wait before the request is repeated, or `undefined` if it is not repeated. */
function delayBeforeRepeat(
  outcome: Answer | ConnectionError,
  failures: number,
  isRepeatable: boolean,
  { maxAttempts, baseDelayMs, maxDelayMs }: RetryPolicy,
): number | undefined {
  if (failures >= maxAttempts || !isRepeated(outcome, isRepeatable)) return undefined
  const retryAfterMs = 'status' in outcome ? outcome.retryAfterMs : undefined
  // Full jitter: a random wait up to the backoff, so that many clients do not repeat at the same time.
  return retryAfterMs ?? Math.random() * backoffMs(failures, { firstMs: baseDelayMs, maxMs: maxDelayMs })
}

/** Whether another attempt may succeed and is safe: the last one had no effect, or the request may be repeated anyway. */
function isRepeated(outcome: Answer | ConnectionError, isRepeatable: boolean): boolean {
  if (!('status' in outcome)) return outcome.requestSent ? isRepeatable : isTransient(outcome)
  return isBusy(outcome.status) || (isRepeatable && isOutcomeOpen(outcome.status))
}

/** @param secrets - those of the request */
function answerOf(
  { address, action, secretsIn }: UnauthorizedRequest,
  response: HttpResponse,
  secrets: () => readonly string[],
): Answer {
  const { body, bodyComplete, header, status } = response
  const shown = (text: string) => {
    const rest = redact(text, secrets(), { cutOff: !bodyComplete })
    return secretsIn === undefined ? rest : redactTokens(rest)
  }
  return {
    url: address.shown,
    status,
    body,
    bodyComplete,
    retryAfterMs: parseRetryAfterMs(header('retry-after'), header('date')),
    // A 201 has an id, which only the service can give: not looked at, because this is what each create costs most.
    intermediary: isCreated(status) ? undefined : intermediaryOf(response),
    requestId: requestIdOf(header, () => [...secrets(), ...(secretsIn?.(body) ?? [])]),
    header(name) {
      const value = header(name)
      return value && shown(value)
    },
    // Not a getter: with one, each answer took a microsecond more.
    text: () => shown(body),
    action,
    redact: shown,
    json(schema, refuse) {
      const json = bodyComplete ? parseJson(body) : undefined
      if (json !== undefined) return validate(schema, json, refuse)
      const encoding = header('content-encoding')
      const howEncoded = encoding === undefined ? '' : `: it is encoded as ${excerpt(shown(encoding), 50)}`
      const message = bodyComplete ? `is not JSON${howEncoded}` : 'is incomplete or too long'
      throw refuse([{ path: [], message }])
    },
  }
}

/**
 * Reads `Retry-After`, seconds or an HTTP date (RFC 9110 section 10.2.3), as milliseconds from now. Some servers send a fraction.
 *
 * @param sent - the server's `Date`: its clock and ours may differ
 */
function parseRetryAfterMs(value: string | undefined, sent: string | undefined): number | undefined {
  const text = value?.trim()
  if (text === undefined || text.length > 100) return undefined
  // A value with more digits is ignored: it would be centuries.
  if (/^\d{1,10}(?:\.\d{1,20})?$/.test(text)) return Math.ceil(Number(text) * 1_000)
  const at = parseDate(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - (parseDate(sent) || Date.now()))
}

/** An HTTP date in one of its three forms (RFC 9110 section 5.6.7), or `NaN`. */
function parseDate(text = ''): number {
  // It begins with the name of a day. Without this check Date.parse would read "-1" as a year.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return Number.NaN
  // The form of C's `asctime` has no zone, and is GMT like the others.
  return Date.parse(/\d\d:\d\d \d{4}$/.test(text) ? `${text} GMT` : text)
}

/** Headers in which services, load balancers and networks name a request. */
const requestIdHeaders = ['x-request-id', 'x-correlation-id', 'x-amzn-trace-id', 'cf-ray']

/** The first of the {@link requestIdHeaders} that can be shown: visible ASCII, at most 200 characters. */
function requestIdOf(header: HttpResponse['header'], secrets: () => readonly string[]): string | undefined {
  const id = requestIdHeaders
    .map((name) => header(name))
    .find((value) => value !== undefined && /^[\x21-\x7e]{1,200}$/.test(value))
  // A server may return anything, even a secret.
  return id === undefined || redactTokens(redact(id, secrets())) !== id ? undefined : id
}
