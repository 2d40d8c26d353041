/** The exponential backoff. */

export interface Backoff {
  /** Wait after the first failure, in milliseconds; each further failure doubles the wait. */
  readonly firstMs: number
  /** Longest wait, in milliseconds. */
  readonly maxMs: number
}

/** How long to wait after `failures` failures in a row, in milliseconds. `failures` is 1 after the first failure. */
export function backoffMs(failures: number, { firstMs, maxMs }: Backoff): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1))
}

/** Full jitter: a random wait up to {@link backoffMs}, so that many clients do not repeat at the same time. */
export function jitteredBackoffMs(failures: number, backoff: Backoff): number {
  return Math.random() * backoffMs(failures, backoff)
}
