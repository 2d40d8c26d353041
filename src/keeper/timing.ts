/**
 * Time limits and waits of the keeper, in milliseconds. Names of times: `…At` is wall clock, `…Since` (past) and `…From`
 * (earliest) are monotonic.
 */
import { backoffMs } from '../shared/backoff.js'

export const minute = 60_000
export const day = 24 * 60 * minute
/** Before any time. */
export const never = Number.NEGATIVE_INFINITY

/** A store that takes longer fails; a store that fails is tried this often. */
export const storeTimeoutMs = 5_000
export const rosterTimeoutMs = 30_000
export const callTimeoutMs = 30_000

/** A call is sent within this time after its claim was written, or claimed again. */
export const claimFreshMs = 10_000
/** A claim that has not changed for this long was left behind: the outcome of its call is unknown. */
export const claimStaleMs = 2 * minute
/** How often the claim of another process is read. */
export const claimLookMs = 10_000

/** How often the configuration is read; and the roster at most, if a user was removed by another process. */
export const lookMs = 30_000
/** A delivery may be the late third failure: it proves the time of its receipt less this. */
export const deliveryLagMs = 1 * minute
/** After a create whose answer cannot be read, and for a route that is wrong, the next attempt waits. */
export const brokenAnswerMs = 15 * minute
/** So long after the last failure an outage is resolved, so that a service that flaps is one problem. */
export const calmMs = 1 * minute

/** Without another end for this time, or an interval if that is longer, the receiver works again. */
export const calmAfterEndMs = 15 * minute

/** How long a sweep waits for the service or the store. */
export const sweepPatienceMs = 1 * minute
/** How long a sweep waits for a claim: the claim is stale then, and one more look is needed. */
export const claimPatienceMs = claimStaleMs + 10_000

/** How long after a restore the next one waits: 1, 2, 4, 8, 15 minutes; nothing after a delivery. */
export function restoreWaitMs(restoresSinceDelivery: number): number {
  if (restoresSinceDelivery === 0) return 0
  return backoffMs(restoresSinceDelivery, { firstMs: minute, maxMs: 15 * minute })
}

/** So often in a row the service is believed to know how soon it is to be asked again. */
const trustedFailures = 3

/** How long after so many failures in a row the next attempt waits: 5 s to 5 min, also if the service asks for more. */
export function retryWaitMs(failures: number, retryAfterMs?: number): number {
  const backoff = backoffMs(failures, { firstMs: 5_000, maxMs: 5 * minute })
  const isTrusted = retryAfterMs !== undefined && failures <= trustedFailures
  return Math.min(5 * minute, isTrusted ? retryAfterMs : Math.max(backoff, retryAfterMs ?? 0))
}

/** The monotonic clock. */
export function now(): number {
  return performance.now()
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
