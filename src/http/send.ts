/** Sends a request until it is answered, or until repeating it would be unsafe or useless. */
import { ConnectionError, type NotificationError } from '../errors.js'
import type { Log } from '../logger.js'
import { isTransient } from './connection-error.js'
import type { Deadline } from './deadline.js'
import { redact } from './redact.js'
import { backoffMs, isOutcomeOpen, isTurnedAway, parseRetryAfterMs, type RetryPolicy } from './retry.js'
import type { HttpRequest, HttpResponse, Transport } from './transport.js'
import { sleep } from './waits.js'

/** What a call knows about its own effect on the server, kept across its attempts. */
export interface Progress {
  /** Attempts that may have taken effect: sent, without an answer that says whether they did. */
  lostAttempts: number
}

export interface SendOptions {
  readonly transport: Pick<Transport, 'send'>
  readonly retry: RetryPolicy
  readonly log: Log
  readonly deadline: Deadline
  /** Whether repeating does no harm after an attempt whose outcome is unknown. */
  readonly repeatable: boolean
  readonly progress: Progress
  /** The error that an answer with an error status means: the `cause` of a timeout that comes after it. */
  readonly errorOf: (answer: Answer) => NotificationError
}

/** The answer to the last attempt, whatever its status. */
export interface Answer extends Omit<HttpResponse, 'retryAfter'> {
  /** The address that answered, without its query. */
  readonly url: string
  readonly retryAfterMs: number | undefined
  /** What a text from this answer may show in an error: none of the request's secrets. */
  redact(text: string): string
}

/**
 * Sends a request, and repeats it as the options say. The caller decides what an answer's status means.
 *
 * @throws `ConnectionError` when the last attempt got no answer, or the deadline's reason
 */
export async function send(request: HttpRequest, options: SendOptions): Promise<Answer> {
  const { deadline } = options
  for (let attempt = 1; ; attempt++) {
    const startedAt = performance.now()
    const outcome = await sendOnce(request, options)
    const now = performance.now()
    record(request, outcome, { attempt, durationMs: Math.round(now - startedAt) }, options)
    const delayMs = delayBeforeRepeat(outcome, attempt, options)
    if (delayMs === undefined || now + delayMs >= deadline.endsAt) {
      if (!isAnswered(outcome)) throw outcome
      return answerOf(request, outcome)
    }
    const fields = {
      method: request.method,
      url: request.address.shown,
      attempt,
      delayMs: Math.round(delayMs),
    }
    options.log('info', fields, 'Request will be repeated')
    deadline.lastFailure = isAnswered(outcome) ? options.errorOf(answerOf(request, outcome)) : outcome
    deadline.waitFor('backoff', request.address)
    await sleep(delayMs, deadline)
  }
}

/** @throws the deadline's reason, or what went wrong in this package or in a caller's function */
async function sendOnce(
  request: HttpRequest,
  { deadline, progress, transport }: SendOptions,
): Promise<HttpResponse | ConnectionError> {
  const sentBefore = deadline.requestsSent
  deadline.waitFor('connection', request.address)
  try {
    if (deadline.aborted) throw deadline.reason
    return await transport.send(request, deadline)
  } catch (error) {
    if (error instanceof ConnectionError && !deadline.aborted) return error
    // If the request had been sent already, its outcome is unknown.
    if (deadline.requestsSent > sentBefore) progress.lostAttempts++
    throw error
  }
}

/** Counts and logs what came of an attempt. */
function record(
  { method, address }: HttpRequest,
  outcome: HttpResponse | ConnectionError,
  { attempt, durationMs }: { attempt: number; durationMs: number },
  { log, progress }: SendOptions,
): void {
  if (isLost(outcome)) progress.lostAttempts++
  const { shown: url } = address
  if (isAnswered(outcome)) {
    log('debug', { method, url, attempt, status: outcome.status, durationMs }, 'Request answered')
  } else {
    log('warn', { method, url, attempt, durationMs, error: outcome.message }, 'Request got no answer')
  }
}

/** How long to wait before the request is repeated, or `undefined` when this outcome is the last. */
function delayBeforeRepeat(
  outcome: HttpResponse | ConnectionError,
  attempt: number,
  { repeatable, retry }: SendOptions,
): number | undefined {
  const again = isLost(outcome) ? repeatable : isWorthAnother(outcome)
  if (!again || attempt >= retry.maxAttempts) return undefined
  const retryAfterMs = isAnswered(outcome) ? parseRetryAfterMs(outcome.retryAfter) : undefined
  return retryAfterMs ?? backoffMs(attempt, retry)
}

function answerOf({ address, secrets }: HttpRequest, response: HttpResponse): Answer {
  const { body, bodyComplete, retryAfter, status } = response
  return {
    url: address.shown,
    status,
    body,
    bodyComplete,
    retryAfterMs: parseRetryAfterMs(retryAfter),
    redact: (text) => redact(text, secrets(), { cutOff: !bodyComplete }),
  }
}

function isAnswered(outcome: HttpResponse | ConnectionError): outcome is HttpResponse {
  return 'status' in outcome
}

function isLost(outcome: HttpResponse | ConnectionError): boolean {
  return isAnswered(outcome) ? isOutcomeOpen(outcome.status) : outcome.requestSent
}

/** Whether another attempt is worth it after one that had no effect. */
function isWorthAnother(outcome: HttpResponse | ConnectionError): boolean {
  return isAnswered(outcome) ? isTurnedAway(outcome.status) : isTransient(outcome)
}
