/** Time limits and waits of the keeper, in milliseconds, and its monotonic clock. */
import { backoffMs } from '../shared/waits.js'

export const minute = 60_000
export const day = 24 * 60 * minute
export const longAgo = Number.NEGATIVE_INFINITY

/** The time limit of the store, and how often a failing store is tried. */
export const storeTimeoutMs = 5_000
/**
 * By up to this share of an interval the next proof is due earlier in the process that is first for the user, and later in the
 * other processes. So one process proves a user, and the proofs of all users do not come at once.
 */
export const jitter = 1 / 15
/** A claim that has not changed for this long is stale: the outcome of its request is unknown. */
export const claimStaleMs = 2 * minute
/** How often the configuration is read. The roster is read at most this often after another process has removed a user. */
export const lookMs = 30_000
/** A delivery proves only that the subscription existed this long before: a late delivery may be the third failure. */
export const deliveryLagMs = 1 * minute
/** The wait after an unreadable answer to a create, or for a wrong route. */
export const brokenAnswerMs = 15 * minute
/** If no subscription ends for this time, the receiver works again. */
export const calmAfterEndMs = (sweepIntervalMs: number) => Math.max(15 * minute, sweepIntervalMs)
/** How long a sweep waits for the service or the store. */
export const sweepPatienceMs = 1 * minute
/** How long a sweep waits for a claim: until it is stale, and one more look. */
export const claimPatienceMs = claimStaleMs + 10_000

/** The wait after a restore: 1, 2, 4, 8, 15 minutes; none after a delivery. */
export function restoreWaitMs(restores: number): number {
  return restores === 0 ? 0 : backoffMs(restores, { firstMs: minute, maxMs: 15 * minute })
}

/** The wait after this many failures in a row: 5 s to 5 min. The first three waits may be a shorter `Retry-After`. */
export function retryWaitMs(failures: number, retryAfterMs?: number): number {
  const backoff = backoffMs(failures, { firstMs: 5_000, maxMs: 5 * minute })
  const isTrusted = retryAfterMs !== undefined && failures <= 3
  return Math.min(5 * minute, isTrusted ? retryAfterMs : Math.max(backoff, retryAfterMs ?? 0))
}

export const now = () => performance.now()
/** The longest work without a pause for the process' timers and sockets. */
const longestWorkMs = 20

/** Iterates over many items, with pauses for the process' timers and sockets. */
export async function* withPauses<T>(items: Iterable<T>): AsyncGenerator<T> {
  let workedSince = longAgo
  for (const item of items) {
    if (now() - workedSince > longestWorkMs) {
      await delay(0)
      workedSince = now()
    }
    yield item
  }
}

export const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
