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
