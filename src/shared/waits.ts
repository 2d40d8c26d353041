/** Waits: with a time limit, after failures, and the longest one. */

/** Whether `work` settles within `limitMs` milliseconds, by success or failure. Leaves no timer. */
export function settlesWithin(limitMs: number, work: PromiseLike<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs, false)
    const settled = () => {
      clearTimeout(timer)
      resolve(true)
    }
    work.then(settled, settled)
  })
}

/** Settles as `work` does, or rejects after `limitMs` milliseconds. The work goes on then. */
export async function withTimeLimit<Result>(limitMs: number, work: () => Result): Promise<Awaited<Result>> {
  const working = (async () => work())()
  if (await settlesWithin(limitMs, working)) return await working
  throw new Error(`no answer within ${limitMs} ms`)
}

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

/** The longest delay that a timer takes, in milliseconds; a longer one would fire at once. */
export const maxDelayMs = 2 ** 31 - 1
