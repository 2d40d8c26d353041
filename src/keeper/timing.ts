/**
 * The waits of the keeper, and the rules that give their length. Every time is told by its name: `…Since` is past and
 * `…From` the earliest at which something may happen, both monotonic; `…At` is of the wall clock, as what goes into the
 * store or to the user has to be.
 */

/** A create without an answer may still take effect for this long. */
export const settlingMs = 120_000

/** A callback may be the late third failure: a delivery proves the time of its receipt less this. */
export const deliveryLagMs = 60_000

/** Every so many probes of a user one goes by id. */
export const probesPerIdProof = 4

export const rosterTimeoutMs = 30_000
export const storeTimeoutMs = 5_000

/** A store that hung is not asked for records for this long. */
export const storeRestMs = 10_000
export const leaseMs = 60_000
export const heartbeatMs = 30_000

/** Proofs alone are written this rarely; they cost a longer gap in a report at most. */
export const proofFlushMs = 300_000

/** At most one pass in this time because of ends that were found. */
export const incidentPauseMs = 60_000

/** A delivery with an unknown id may be of a subscription whose create is still in flight. */
export const strayPatienceMs = 60_000
export const strayMemoryMs = 3_600_000

/** Callbacks of a subscription that has just ended may arrive this late. */
export const lateCallbacksMs = 300_000

/** A subscription that only an update could prove is looked at again after this time, while no update may be sent. */
export const unprovenPauseMs = 300_000

/** In this time a process that takes over from another one has replaced what it cannot know. */
export const replacingMs = 900_000

const minute = 60_000

/** How long after a restore the next one has to wait: 1, 2, 4, 8, 15 minutes. */
export function restoreWaitMs(restoresSinceDelivery: number): number {
  return restoresSinceDelivery === 0 ? 0 : Math.min(15, 2 ** (restoresSinceDelivery - 1)) * minute
}

/** How long after the `failures`-th failure in a row the next attempt waits: from 5 s to 5 min, also if asked for more. */
export function retryWaitMs(failures: number, retryAfterMs = 0): number {
  return Math.min(5 * minute, Math.max(5_000 * 2 ** Math.min(failures - 1, 10), retryAfterMs))
}

/** A stamp of the wall clock, unless it lies in the future: then a clock was wrong, and it counts as none. */
export function pastStamp(stamp: number | undefined, now: number): number | undefined {
  return stamp !== undefined && stamp <= now ? stamp : undefined
}

/** The earlier of two times of a last proof; if one of them is not known, neither is the earlier one. */
export function earlierStamp(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : Math.min(one, other)
}

/** A time by the monotonic and by the wall clock. */
export interface Instant {
  readonly since: number
  readonly at: number
}

export function presentInstant(): Instant {
  return { since: performance.now(), at: Date.now() }
}

/**
 * What a function of the user's gives back, or the promise that it gives back.
 *
 * @throws what it throws, or what `late` makes when it has taken longer than `limitMs`
 */
export async function inTime(limitMs: number, call: () => unknown, late: () => Error): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), limitMs)
  })
  try {
    return await Promise.race([(async () => call())(), timeout])
  } finally {
    clearTimeout(timer)
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
