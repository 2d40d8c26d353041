/** A user's store with a time limit for each operation. Every failure is a `StoreFailure`; the caller decides what to do. */
import { withTimeLimit } from '../shared/waits.js'
import type { KeyValueStore } from './key-value-store.js'

/** The store threw, or did not answer in time; `cause` is what it threw. After a failed write the value may be stored. */
export class StoreFailure extends Error {
  override readonly name = 'StoreFailure'
}

export class GuardedStore {
  readonly #store: KeyValueStore
  readonly #limitMs: number

  /** @param limitMs - the longest that one operation may take, in milliseconds */
  constructor(store: KeyValueStore, limitMs: number) {
    this.#store = store
    this.#limitMs = limitMs
  }

  /** Whether several processes can share the store. */
  get canCompareAndSet(): boolean {
    return this.#store.compareAndSet !== undefined
  }

  /** @throws StoreFailure, as every method here does */
  async get(key: string): Promise<string | undefined> {
    const value = await this.#within('get', async () => this.#store.get(key))
    return typeof value === 'string' ? value : undefined
  }

  async set(key: string, value: string, ttlMs?: number): Promise<void> {
    await this.#within('set', async () => this.#store.set(key, value, wholeMs(ttlMs)))
  }

  async delete(key: string): Promise<void> {
    await this.#within('delete', async () => this.#store.delete(key))
  }

  /** Only for a store that {@link GuardedStore.canCompareAndSet}. */
  async compareAndSet(
    key: string,
    expected: string | undefined,
    value: string,
    ttlMs?: number,
  ): Promise<boolean> {
    const compare = async () => this.#store.compareAndSet?.(key, expected, value, wholeMs(ttlMs))
    return (await this.#within('compareAndSet', compare)) === true
  }

  async #within(operation: string, run: () => Promise<unknown>): Promise<unknown> {
    const late = () => new Error(`no answer within ${this.#limitMs} ms`)
    try {
      return await withTimeLimit(this.#limitMs, run(), late)
    } catch (cause) {
      throw new StoreFailure(`The store failed: ${operation}.`, { cause })
    }
  }
}

/** Redis refuses a fraction of a millisecond, and a time of 0. */
function wholeMs(ttlMs: number | undefined): number | undefined {
  return ttlMs === undefined ? undefined : Math.ceil(ttlMs)
}
