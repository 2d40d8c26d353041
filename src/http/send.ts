/** Sends a request until it is answered, or until repeating it would be unsafe or useless. */
import { ConnectionError } from '../errors.js'
import type { Log } from '../logger.js'
import { addressOf } from './address.js'
import { type Deadline, sleep } from './deadline.js'
import { redact } from './redact.js'
import { backoffMs, isOutcomeOpen, isTurnedAway, parseRetryAfterMs, type RetryPolicy } from './retry.js'
import type { HttpRequest, HttpResponse, Transport } from './transport.js'

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
  /** Whether a second time does no harm after a first one whose fate is unknown. */
  readonly repeatable: boolean
  readonly progress: Progress
}

/** The last answer, whatever its status. */
export interface Answer extends Omit<HttpResponse, 'retryAfter'> {
  readonly retryAfterMs: number | undefined
  /** What a text from this answer may show in an error: none of the request's secrets. */
  redact(text: string): string
}

/**
 * @throws `ConnectionError` when the last attempt got no answer, or the deadline's reason. The caller decides
 * what an answer's status means.
 */
export async function send(request: HttpRequest, options: SendOptions): Promise<Answer> {
  const { deadline, transport } = options
  for (let attempt = 1; ; attempt++) {
    const startedAt = performance.now()
    const sentBefore = deadline.requestsSent
    let outcome: HttpResponse | ConnectionError
    try {
      if (deadline.aborted) throw deadline.reason
      outcome = await transport.send(request, deadline)
    } catch (error) {
      if (deadline.aborted || !(error instanceof ConnectionError)) {
        // Aborted: lost, if it has left.
        if (deadline.requestsSent > sentBefore) options.progress.lostAttempts++
        throw error
      }
      outcome = error
    }
    const now = performance.now()
    record(request, outcome, { attempt, durationMs: Math.round(now - startedAt) }, options)
    const delayMs = delayBeforeRepeat(outcome, attempt, options)
    if (delayMs === undefined || now + delayMs >= deadline.endsAt) return answerOf(request, outcome)
    const { shown: url } = addressOf(request.url)
    const fields = { method: request.method, url, attempt, delayMs: Math.round(delayMs) }
    options.log('info', fields, 'Request will be repeated')
    await sleep(delayMs, deadline)
  }
}

/** Counts and logs what came of an attempt. */
function record(
  { method, url: fullUrl }: HttpRequest,
  outcome: HttpResponse | ConnectionError,
  { attempt, durationMs }: { attempt: number; durationMs: number },
  { log, progress }: SendOptions,
): void {
  if (isLost(outcome)) progress.lostAttempts++
  const { shown: url } = addressOf(fullUrl)
  if ('status' in outcome) {
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
  const again = isLost(outcome) ? repeatable : isSafelyRefused(outcome)
  if (!again || attempt >= retry.maxAttempts) return undefined
  const retryAfterMs = 'status' in outcome ? parseRetryAfterMs(outcome.retryAfter) : undefined
  return retryAfterMs ?? backoffMs(attempt, retry)
}

/** @throws the `ConnectionError`, if that is the outcome. */
function answerOf(request: HttpRequest, outcome: HttpResponse | ConnectionError): Answer {
  if (!('status' in outcome)) throw outcome
  const { body, bodyComplete, retryAfter, status } = outcome
  const shown = (text: string) => redact(text, request.secrets(), { cutOff: !bodyComplete })
  return { status, body, bodyComplete, retryAfterMs: parseRetryAfterMs(retryAfter), redact: shown }
}

function isLost(outcome: HttpResponse | ConnectionError): boolean {
  return 'status' in outcome ? isOutcomeOpen(outcome.status) : outcome.requestSent
}

function isSafelyRefused(outcome: HttpResponse | ConnectionError): boolean {
  return 'status' in outcome ? isTurnedAway(outcome.status) : !outcome.requestSent
}
