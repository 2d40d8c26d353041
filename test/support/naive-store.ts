/** A key-value store with `compareAndSet` that does what the interface says in the plainest way. */
import type { RedisStore } from 'notification-subscriber/redis'

interface Entry {
  readonly value: string
  readonly expiresAt: number
}

export class NaiveStore implements RedisStore {
  readonly entries = new Map<string, Entry>()

  async get(key: string): Promise<string | undefined> {
    return this.#now(key)
  }

  async set(key: string, value: string, ttlMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.entries.set(key, { value, expiresAt: Date.now() + ttlMs })
  }

  async delete(key: string): Promise<void> {
    this.entries.delete(key)
  }

  async compareAndSet(
    key: string,
    expected: string | undefined,
    value: string,
    ttlMs?: number,
  ): Promise<boolean> {
    if (this.#now(key) !== expected) return false
    await this.set(key, value, ttlMs)
    return true
  }

  #now(key: string): string | undefined {
    const entry = this.entries.get(key)
    return entry && entry.expiresAt > Date.now() ? entry.value : undefined
  }
}

type Changes = { [Name in keyof RedisStore]?: RedisStore[Name] | undefined }

/** A store of which some operations are others; `kept` has all of them, on the same texts. */
export function storeWith(changed: (kept: NaiveStore) => Changes, kept = new NaiveStore()): RedisStore {
  const same: RedisStore = {
    get: (key) => kept.get(key),
    set: (...args) => kept.set(...args),
    delete: (key) => kept.delete(key),
    compareAndSet: (...args) => kept.compareAndSet(...args),
  }
  return { ...same, ...changed(kept) } as RedisStore
}
