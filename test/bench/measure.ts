/** How everything here is measured: side by side, in turns. */

export interface Settings {
  readonly rounds: number
  /** For how long each subject runs in each round, in milliseconds. */
  readonly runMs: number
}

export type Figures = readonly number[]

/** The same time in more and shorter rounds: what runs in one process alone needs no time to get going. */
export function shorter({ rounds, runMs, ...others }: Settings): Settings {
  return { rounds: rounds * 5, runMs: runMs / 10, ...others }
}

/** More rounds: what has a process at each end of a connection is slowed down by far more than itself. */
export function oftener({ rounds, ...others }: Settings): Settings {
  return { rounds: rounds * 3, ...others }
}

/**
 * Measures every subject once a round, in an order that turns around each time, so that what slows a machine
 * down for a while slows all of them. One more round comes first and does not count.
 */
export async function inTurns<Name extends string, T>(
  { rounds, runMs }: Pick<Settings, 'rounds' | 'runMs'>,
  names: readonly Name[],
  measure: (name: Name, runMs: number) => Promise<T>,
): Promise<Record<Name, T[]>> {
  const results = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>
  for (const name of names) await measure(name, runMs)
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      results[name].push(await measure(name, runMs))
    }
  }
  return results
}

/** The ratio of the middle round, and how far it went in any of them. */
export interface Ratio {
  readonly median: number
  readonly min: number
  readonly max: number
  /** The round whose ratio is the median; of an even number of rounds the lower one of the two. */
  readonly round: number
}

export function ratioOf(ours: Figures, peers: Figures): Ratio {
  const ratios = ours.map((figure, round) => figure / (peers[round] ?? Number.NaN))
  const sorted = ratios.toSorted((a, b) => a - b)
  const median = sorted[(sorted.length - 1) >> 1] ?? Number.NaN
  return { median, min: Math.min(...ratios), max: Math.max(...ratios), round: ratios.indexOf(median) }
}

export interface Cost {
  readonly calls: number
  readonly elapsedMs: number
  /** CPU time of the process that was measured, in microseconds. */
  readonly cpuMicros: number
}

export const callsPerSecond = ({ calls, elapsedMs }: Cost) => (calls / elapsedMs) * 1_000
export const cpuNanosecondsPerCall = ({ calls, cpuMicros }: Cost) => (cpuMicros / calls) * 1_000
export const nanosecondsPerCall = ({ calls, elapsedMs }: Cost) => (elapsedMs / calls) * 1e6

/** Measures what `work`, which resolves with the number of its calls, costs this process. */
export async function costOf(work: () => Promise<number>): Promise<Cost> {
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const calls = await work()
  const elapsedMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpuBefore)
  return { calls, elapsedMs, cpuMicros: user + system }
}

/** Keeps `concurrency` calls going until the time is over; resolves with how many there were. */
export async function callFor(
  runMs: number,
  concurrency: number,
  call: () => Promise<unknown>,
): Promise<number> {
  const endsAt = performance.now() + runMs
  let calls = 0
  const callAll = async () => {
    while (performance.now() < endsAt) {
      await call()
      calls++
    }
  }
  await Promise.all(Array.from({ length: concurrency }, callAll))
  return calls
}

/** Bytes in use on the heap after a collection. The process needs `--expose-gc`. */
export async function heapAfterCollection(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('this process cannot collect: it runs without --expose-gc')
  // Twice, with a pause for finalizers: the first frees what the second collects.
  for (let pass = 0; pass < 2; pass++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  globalThis.gc()
  return process.memoryUsage().heapUsed
}
