/** A store that may fail or hang, asked in bounded time: what goes wrong is a line in the log and one kind of error. */
import type { Log } from '../logger.js'
import type { KeyValueStore } from '../stores/key-value-store.js'

/** The store failed, or did not answer in time. The log has been told why. */
export class StoreUnavailable extends Error {}

/** How long operations of a store may take. */
export interface StoreTime {
  /** Limit for the next operation, in milliseconds. */
  leftMs(): number
  /** Told how long an operation took. */
  spend(ms: number): void
}

/** For operations that no call waits for: a second each. */
export const backgroundTime: StoreTime = { leftMs: () => 1_000, spend() {} }

/**
 * For operations that calls wait for: less than a second for all of them together, because a call may need several.
 * What was spent comes back slowly, so that a call that asks for a second token, after a 401, does not wait as long
 * again.
 */
export class WaitingTime implements StoreTime {
  static readonly #maxMs = 900
  static readonly #returnedPerMs = 1 / 30
  #leftMs = WaitingTime.#maxMs
  #countedAt = performance.now()

  leftMs(): number {
    const now = performance.now()
    const returnedMs = (now - this.#countedAt) * WaitingTime.#returnedPerMs
    this.#leftMs = Math.min(this.#leftMs + returnedMs, WaitingTime.#maxMs)
    this.#countedAt = now
    return this.#leftMs
  }

  spend(ms: number): void {
    this.#leftMs -= ms
  }
}

/** With less time than this a healthy store might seem to hang. */
const shortestMs = 20

export class BoundedStore {
  readonly #store: KeyValueStore
  readonly #time: StoreTime
  readonly #log: Log

  constructor(store: KeyValueStore, time: StoreTime, log: Log) {
    this.#store = store
    this.#time = time
    this.#log = log
  }

  /** Whether the store can write on condition. */
  get canCompareAndSet(): boolean {
    return this.#store.compareAndSet !== undefined
  }

  /** @throws `StoreUnavailable`, as every method here does */
  async get(key: string): Promise<string | undefined> {
    const value = await this.#within('read', () => this.#store.get(key))
    return typeof value === 'string' ? value : undefined
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#within('write', () => this.#store.set(key, value, wholeMs(ttlMs)))
  }

  async delete(key: string): Promise<void> {
    await this.#within('delete', () => this.#store.delete(key))
  }

  /** Only for a store that {@link BoundedStore.canCompareAndSet}. */
  async compareAndSet(
    key: string,
    expected: string | undefined,
    value: string,
    ttlMs: number,
  ): Promise<boolean> {
    const compareAndSet = () => this.#store.compareAndSet?.(key, expected, value, wholeMs(ttlMs))
    return (await this.#within('compareAndSet', compareAndSet)) === true
  }

  async #within(operation: string, run: () => unknown): Promise<unknown> {
    const limitMs = this.#time.leftMs()
    // Not logged: the operations that used the time up have been.
    if (limitMs < shortestMs) throw new StoreUnavailable()
    const startedAt = performance.now()
    let timer: NodeJS.Timeout | undefined
    try {
      const late = new Promise((_, reject) => {
        const error = new DOMException(`no answer within ${Math.round(limitMs)} ms`, 'TimeoutError')
        timer = setTimeout(() => reject(error), limitMs)
      })
      return await Promise.race([run(), late])
    } catch (error) {
      // The error's name only: what else a store's error carries is unknown, and may be the token.
      const reason = error instanceof Error ? error.name : typeof error
      this.#log('warn', { operation, reason }, 'Token cache failed; going on without it')
      throw new StoreUnavailable()
    } finally {
      clearTimeout(timer)
      this.#time.spend(performance.now() - startedAt)
    }
  }
}

/** Redis refuses a time that is no integer, and a time of 0: hence an integer, and rounded up. */
function wholeMs(ttlMs: number): number {
  return Math.ceil(ttlMs)
}
