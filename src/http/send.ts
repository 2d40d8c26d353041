/** Sends a request until it is answered, or until repeating it would be unsafe or useless. */
import { ConnectionError } from '../errors.js'
import { type SafeLogger, withoutQuery } from '../logger.js'
import { type Deadline, sleep, untilAborted } from './deadline.js'
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
  readonly logger: SafeLogger
  readonly deadline: Deadline
  /** Whether a second time does no harm after a first one whose fate is unknown. */
  readonly repeatable: boolean
  readonly progress: Progress
}

/** The last answer, whatever its status. */
export interface Answer extends HttpResponse {
  readonly retryAfterMs: number | undefined
  /** What a text from this answer may show in an error: none of the request's secrets. */
  redact(text: string): string
}

/**
 * @throws `ConnectionError` when the last attempt got no answer, or the deadline's reason. The caller decides
 * what an answer's status means.
 */
export async function send(request: HttpRequest, options: SendOptions): Promise<Answer> {
  const { deadline, logger, progress, retry } = options
  const { method } = request
  const url = withoutQuery(request.url)
  for (let attempt = 1; ; attempt++) {
    const startedAt = performance.now()
    const sentBefore = deadline.requestsSent
    let outcome: HttpResponse | ConnectionError
    try {
      outcome = await answerTo(request, options)
    } catch (error) {
      // Aborted: lost, if it has left.
      if (deadline.requestsSent > sentBefore) progress.lostAttempts++
      throw error
    }
    const lost = isLost(outcome)
    if (lost) progress.lostAttempts++
    const durationMs = Math.round(performance.now() - startedAt)
    const retryAfterMs = 'status' in outcome ? parseRetryAfterMs(outcome.retryAfter) : undefined
    if ('status' in outcome) {
      logger.debug({ method, url, attempt, status: outcome.status, durationMs }, 'Request answered')
    } else {
      logger.warn({ method, url, attempt, durationMs, error: outcome.message }, 'Request got no answer')
    }
    const again = lost ? options.repeatable : isSafelyRefused(outcome)
    const delayMs = retryAfterMs ?? backoffMs(attempt, retry)
    const inTime = performance.now() + delayMs < deadline.endsAt
    if (!again || !inTime || attempt >= retry.maxAttempts) {
      if ('status' in outcome) {
        return {
          ...outcome,
          retryAfterMs,
          redact: (text) => redact(text, request.secrets, { cutOff: !outcome.bodyComplete }),
        }
      }
      throw outcome
    }
    logger.info({ method, url, attempt, delayMs: Math.round(delayMs) }, 'Request will be repeated')
    await sleep(delayMs, deadline)
  }
}

/** The answer, or the error for its lack; throws for anything else, and the deadline's reason. */
async function answerTo(
  request: HttpRequest,
  { deadline, transport }: SendOptions,
): Promise<HttpResponse | ConnectionError> {
  try {
    if (deadline.aborted) throw deadline.reason
    return await untilAborted(transport.send(request, deadline), deadline)
  } catch (error) {
    if (error instanceof ConnectionError && !deadline.aborted) return error
    throw error
  }
}

function isLost(outcome: HttpResponse | ConnectionError): boolean {
  return 'status' in outcome ? isOutcomeOpen(outcome.status) : outcome.requestSent
}

function isSafelyRefused(outcome: HttpResponse | ConnectionError): boolean {
  return 'status' in outcome ? isTurnedAway(outcome.status) : !outcome.requestSent
}
