/** The names of all users who may have a record, in 64 keys of the store. */
import * as z from 'zod'
import type { KeeperStore } from './keeper-store.js'
import { quickHash } from './processes.js'
import { withPauses } from './timing.js'

const shardCount = 64
const shardSchema = z.array(z.string())

export class IndexOfNames {
  readonly #store: KeeperStore
  /** One change of a shard at a time. */
  readonly #lastChanges: Promise<unknown>[] = []

  constructor(store: KeeperStore) {
    this.#store = store
  }

  /** @throws StoreFailure */
  async read(): Promise<ReadonlySet<string>> {
    const readShard = (_: unknown, shard: number) => this.#store.read(keyOf(shard), shardSchema)
    const shards = await Promise.all(Array.from({ length: shardCount }, readShard))
    return new Set(shards.flatMap(({ value = [] }) => value))
  }

  /** @throws StoreFailure */
  async add(usernames: readonly string[]): Promise<void> {
    const byShard = Array.from({ length: shardCount }, (): string[] => [])
    for await (const username of withPauses(usernames)) byShard[shardOf(username)]?.push(username)
    const enter = async (added: string[], shard: number) =>
      added.length > 0 && this.#change(shard, (names) => [...new Set([...names, ...added])])
    await Promise.all(byShard.map(enter))
  }

  /** @throws StoreFailure */
  remove(username: string): Promise<void> {
    return this.#change(shardOf(username), (names) => names.filter((name) => name !== username))
  }

  #change(shard: number, change: (names: readonly string[]) => readonly string[]): Promise<void> {
    const key = keyOf(shard)
    const changed = (this.#lastChanges[shard] ?? Promise.resolve()).then(() =>
      this.#store.untilStored(key, async () => {
        const { text, value = [] } = await this.#store.read(key, shardSchema)
        const names = change(value)
        if (names.length === value.length) return true
        return this.#store.compareAndSet(key, text, JSON.stringify(names))
      }),
    )
    this.#lastChanges[shard] = changed.catch(() => {})
    return changed
  }
}

const shardOf = (username: string) => quickHash(username) % shardCount
const keyOf = (shard: number) => `members:${shard}`
