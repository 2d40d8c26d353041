/** Sends one request with retries: token, attempt, one new token after a 401, backoff, all within one deadline. */
import { type ConnectionError, NotificationError } from '../errors.js'
import type { Log } from '../logger.js'
import { jitteredBackoffMs } from '../shared/backoff.js'
import { isOutcomeOpen, isTurnedAway } from '../shared/status.js'
import { isTransient, toConnectionError } from './connection-error.js'
import type { Deadline, Progress, TokenSourceProgress } from './deadline.js'
import { redact, redactTokens } from './redact.js'
import type { HttpRequest, HttpResponse, Transport } from './transport.js'

/** A request before it has its Authorization header. */
export interface UnauthorizedRequest extends Pick<HttpRequest, 'method' | 'address' | 'body'> {
  /** The media type of the body. Default: a form. */
  readonly contentType?: string | undefined
  /** Further headers that the caller wants sent. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Secrets in the request: an error must not show them, even if the server sends them back. */
  readonly secrets: readonly string[]
  /** Whether the request is safe to repeat after an attempt whose outcome is unknown. */
  readonly isRepeatable: boolean
  /** What the request does, as the rest of "Could not …", e.g. `unsubscribe`. */
  readonly purpose: string
}

export interface Authorization {
  /** The value of the header. */
  readonly header: string
  /** Texts that no error and no log line may show. */
  readonly secrets: readonly string[]
}

export interface Authorizer {
  /** The authorization for the next request; without a promise if there is nothing to wait for. */
  authorize(deadline: Deadline): Authorization | Promise<Authorization>
  /** After a 401: a new authorization to repeat the request with, or `undefined` if repeating would not help. */
  reauthorize(rejected: Authorization, deadline: Deadline): Promise<Authorization | undefined>
  /** Where tokens come from, if they come from an endpoint. */
  readonly tokenSource?: TokenSourceProgress | undefined
}

/** How failed attempts are repeated. All waiting happens within the call's `timeoutMs`. */
export interface RetryOptions {
  /** Number of attempts, the first included; the repeat after a 401 is not counted. Default: 3. */
  readonly maxAttempts?: number | undefined
  /** Upper bound of the wait before the second attempt, in milliseconds; it doubles each time. Default: 250. */
  readonly baseDelayMs?: number | undefined
  /** Upper bound of any wait that the server did not ask for, in milliseconds. Default: 8,000. */
  readonly maxDelayMs?: number | undefined
}

export interface RetryPolicy {
  readonly maxAttempts: number
  readonly baseDelayMs: number
  readonly maxDelayMs: number
}

export const defaultRetryPolicy: RetryPolicy = { maxAttempts: 3, baseDelayMs: 250, maxDelayMs: 8_000 }

/** The policy that the options describe; `base` has the values for fields that they leave out. */
export function retryPolicy(options: RetryOptions | undefined, base: RetryPolicy): RetryPolicy {
  return {
    maxAttempts: options?.maxAttempts ?? base.maxAttempts,
    baseDelayMs: options?.baseDelayMs ?? base.baseDelayMs,
    maxDelayMs: options?.maxDelayMs ?? base.maxDelayMs,
  }
}

export interface SendOptions {
  readonly authorizer: Authorizer
  readonly transport: Transport
  readonly retry: RetryPolicy
  readonly log: Log
  readonly deadline: Deadline
  /** `send` keeps this record up to date; the caller reads it after the call. */
  readonly progress: Progress
  /** Makes the error for an answer with an error status: the `cause` if a later attempt runs out of time. */
  readonly errorOf: (answer: Answer) => NotificationError
}

/** The answer to the last attempt, whatever its status. */
export interface Answer extends Omit<HttpResponse, 'header'> {
  /** The address that answered, without its query. */
  readonly url: string
  readonly retryAfterMs: number | undefined
  readonly requestId: string | undefined
  /** As in {@link UnauthorizedRequest}. */
  readonly purpose: string
  /** Makes a text from this answer safe to show in an error: removes the request's secrets. */
  redact(text: string): string
}

/** Sent with every request: some firewalls refuse requests without a user agent. Has the version of package.json. */
export const userAgent = 'notification-subscriber/0.3.0'

/** Every answer with a body is JSON (docs/service.md, Endpoints). */
const accept = 'application/json'
const form = 'application/x-www-form-urlencoded'

/**
 * Sends a request, and repeats it as the options say. The caller decides what an answer's status means.
 *
 * @throws `ConnectionError` when the last attempt got no answer, what the authorizer throws, or the deadline's reason
 */
export async function send(request: UnauthorizedRequest, options: SendOptions): Promise<Answer> {
  const { authorizer, deadline, log, progress, retry } = options
  const { method, isRepeatable } = request
  const url = request.address.shown
  let authorization = await authorizer.authorize(deadline)
  let rejected: Authorization | undefined
  let failures = 0
  for (;;) {
    const outcome = await attempt(request, authorization, rejected, options)

    if (isAnswer(outcome) && outcome.status === 401 && rejected === undefined) {
      rejected = authorization
      progress.phase = 'token'
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
    const fields = { method, url, attempt: progress.attempts, delayMs: Math.round(delayMs) }
    log('info', { event: 'request.retried', ...fields }, 'Request will be repeated')
    progress.lastFailure = isAnswer(outcome) ? options.errorOf(outcome) : outcome
    progress.phase = 'backoff'
    await deadline.sleep(delayMs)
  }
}

/**
 * One attempt.
 *
 * @param rejected - the authorization that was answered 401 before: its secrets are redacted, too
 * @throws the deadline's reason, or an error of this package that is not about the network
 */
async function attempt(
  request: UnauthorizedRequest,
  authorization: Authorization,
  rejected: Authorization | undefined,
  { deadline, log, progress, transport }: SendOptions,
): Promise<Answer | ConnectionError> {
  const { address, body, method } = request
  const headers = headersOf(request, authorization)
  const secrets = () => [...request.secrets, ...authorization.secrets, ...(rejected?.secrets ?? [])]
  const shown = () => ({
    method,
    url: address.shown,
    attempt: progress.attempts,
    durationMs: Math.round(performance.now() - progress.attemptedSince),
  })
  progress.attempts += 1
  progress.attemptedSince = performance.now()
  progress.phase = 'connection'
  progress.address = address
  progress.status = undefined
  try {
    deadline.checkClock()
    if (deadline.aborted) throw deadline.reason
    const response = await transport.send({ method, address, headers, body }, deadline, progress)
    const answer = answerOf(request, response, secrets)
    const { requestId, status } = answer
    progress.status = status
    if (isOutcomeOpen(status)) progress.lostAttempts += 1
    const fields = { ...shown(), status, ...(requestId !== undefined && { requestId }) }
    log('debug', { event: 'request.answered', ...fields }, 'Request answered')
    return answer
  } catch (error) {
    const mayHaveLeft = hasLeft(progress)
    if (mayHaveLeft) progress.lostAttempts += 1
    if (deadline.aborted) throw deadline.reason
    if (error instanceof NotificationError) throw error
    const failure = toConnectionError(error, { host: address.host, secrets: secrets() }, mayHaveLeft)
    log('warn', { event: 'request.failed', ...shown(), err: failure }, 'Request got no answer')
    return failure
  }
}

/** A separate function, because inline TypeScript would narrow `phase` to the last value that `attempt` assigned. */
function hasLeft({ phase }: Progress): boolean {
  return phase === 'answer'
}

function headersOf(
  { body, contentType = form, headers }: UnauthorizedRequest,
  { header: authorization }: Authorization,
): Record<string, string> {
  const own = { accept, authorization, 'user-agent': userAgent }
  // Not spread: undici is slower with objects made by spreading, and most calls have no further headers.
  if (headers === undefined && body !== undefined) {
    return { accept, authorization, 'user-agent': userAgent, 'content-type': contentType }
  }
  return { ...headers, ...own, ...(body !== undefined && { 'content-type': contentType }) }
}

/** What a caller's `fetch` or dispatcher may resolve with: a mock's mistake, or a redirect that a browser hides. */
const noResponse = 'the answer is no response: it has no HTTP status'

/** @throws for an answer without a status, which leaves open what became of the request */
function answerOf(
  { address, purpose }: UnauthorizedRequest,
  response: HttpResponse,
  secrets: () => readonly string[],
): Answer {
  const { body, bodyComplete, status } = response
  if (!Number.isInteger(status) || status < 100) throw new Error(noResponse)
  return {
    url: address.shown,
    status,
    body,
    bodyComplete,
    retryAfterMs: parseRetryAfterMs(response.header('retry-after')),
    requestId: requestIdOf(response, secrets),
    purpose,
    redact: (text) => redact(text, secrets(), { cutOff: !bodyComplete }),
  }
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

/** Whether another attempt is worth it after one that had no effect. */
function isWorthAnother(outcome: Answer | ConnectionError): boolean {
  return isAnswer(outcome) ? isTurnedAway(outcome.status) : isTransient(outcome)
}

/** Reads `Retry-After`, seconds or an HTTP date (RFC 9110 section 10.2.3), as milliseconds from now. */
function parseRetryAfterMs(value: string | undefined): number | undefined {
  const text = value?.trim()
  if (text === undefined || text.length > 100) return undefined
  // More digits would be centuries: such a value is ignored.
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000
  // An HTTP date begins with the name of a day. Without this check Date.parse would read "1.5" or "-1" as years.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return undefined
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** Headers in which services, load balancers and networks name a request. */
const requestIdHeaders = ['x-request-id', 'x-correlation-id', 'x-amzn-trace-id', 'cf-ray']

/** The first of the {@link requestIdHeaders} that can be shown: visible ASCII, at most 200 characters. */
function requestIdOf(response: HttpResponse, secrets: () => readonly string[]): string | undefined {
  const canBeShown = (id: string) => id.length <= 200 && /^[\x21-\x7e]+$/.test(id)
  const id = requestIdHeaders
    .map((name) => response.header(name))
    .find((value) => value !== undefined && canBeShown(value))
  // A server may send back anything, even a secret.
  return id === undefined || redactTokens(redact(id, secrets())) !== id ? undefined : id
}
