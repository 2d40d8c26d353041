/** Which failed attempts are repeated, and after which wait. */
import type { ConnectionError } from '../errors.js'
import { isBusy, isOutcomeOpen } from '../shared/statuses.js'
import { backoffMs } from '../shared/waits.js'
import type { Answer } from './answer.js'
import { isTransient } from './connection-error.js'

/** How failed attempts are repeated. All waiting happens within the call's `timeoutMs`. */
export interface RetryOptions {
  /** Number of attempts, the first included; a repeat with a new token after a 401 is not counted. Default: 3. */
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

/** How long to wait before the request is repeated, or `undefined` if it is not repeated. */
export function delayBeforeRepeat(
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
