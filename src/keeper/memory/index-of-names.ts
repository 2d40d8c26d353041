/** The names of all users who may have a record, in 64 keys of the store. */
import * as z from 'zod'
import { withPauses } from '../timing.js'
import { type KeeperStore, unlessKeyFails } from './keeper-store.js'
import { quickHash } from './processes.js'

const shardCount = 64
const shardSchema = z.array(z.string())

export class IndexOfNames {
  readonly #store: KeeperStore
  /** One change of a shard at a time. */
  readonly #lastChanges: Promise<unknown>[] = []

  constructor(store: KeeperStore) {
    this.#store = store
  }

  /** @returns all names, and whether the shard of a name could not be read @throws StoreFailure */
  async read() {
    const names = new Set<string>()
    const unreadable = new Set<number>()
    const readShard = async (_: unknown, shard: number) => {
      const read = await unlessKeyFails(this.#store.read(keyOf(shard), shardSchema))
      if (read === undefined) unreadable.add(shard)
      for (const name of read?.value ?? []) names.add(name)
    }
    await Promise.all(Array.from({ length: shardCount }, readShard))
    return { names, isUnreadable: (username: string) => unreadable.has(shardOf(username)) }
  }

  /** @throws StoreFailure @returns the names that could not be added */
  async add(usernames: readonly string[]): Promise<string[]> {
    const byShard = Array.from({ length: shardCount }, (): string[] => [])
    for await (const username of withPauses(usernames)) byShard[shardOf(username)]?.push(username)
    const enter = async (added: string[], shard: number) => {
      if (added.length === 0) return []
      const change = this.#change(shard, (names) => [...new Set([...names, ...added])])
      return (await unlessKeyFails(change.then(() => []))) ?? added
    }
    return (await Promise.all(byShard.map(enter))).flat()
  }

  /** @throws StoreFailure, KeyFailure */
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
