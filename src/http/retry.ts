/** When a failed attempt is repeated, and after how long. Pure rules; `send.ts` carries them out. */

/** How failed attempts are repeated. All waiting happens within the call's `timeoutMs`. */
export interface RetryOptions {
  /** Attempts in all, the first included. Default: 3. */
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

export const noRetries: RetryPolicy = { ...defaultRetryPolicy, maxAttempts: 1 }

/** The policy that options ask for; `base` has what they leave out. */
export function retryPolicy(options: RetryOptions | undefined, base: RetryPolicy): RetryPolicy {
  return {
    maxAttempts: options?.maxAttempts ?? base.maxAttempts,
    baseDelayMs: options?.baseDelayMs ?? base.baseDelayMs,
    maxDelayMs: options?.maxDelayMs ?? base.maxDelayMs,
  }
}

/** Exponential backoff with full jitter: any wait from none to the bound, so that clients do not march in step. */
export function backoffMs(
  failedAttempts: number,
  policy: Pick<RetryPolicy, 'baseDelayMs' | 'maxDelayMs'>,
): number {
  return Math.random() * Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (failedAttempts - 1))
}

/** Reads `Retry-After`, seconds or an HTTP date (RFC 9110 section 10.2.3), as milliseconds from now. */
export function parseRetryAfterMs(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  // A number with more digits is no time that anybody waits.
  if (/^\s*\d{1,10}\s*$/.test(value)) return Number(value) * 1_000
  // An HTTP date begins with the day's name; Date.parse alone would also take "1.5" or "-1" for years.
  if (!/^\s*[A-Z][a-z]{2,8},? /.test(value)) return undefined
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** 429 and 503 say that the request was turned away unprocessed: repeating is safe for every method. */
export function isTurnedAway(status: number): boolean {
  return status === 429 || status === 503
}

/** 500, 502 and 504 leave open whether the request took effect. */
export function isOutcomeOpen(status: number): boolean {
  return status === 500 || status === 502 || status === 504
}
