/**
 * The members: the names of all users that may have a subscription, in 64 shards. A name enters before anything is
 * created for its user, and leaves under the claim of its user's record.
 */
import { createHash } from 'node:crypto'
import { parseJson } from '../shared/json.js'
import { type KeeperStore, KeyFailure } from './keeper-store.js'

/** `confirmed`: a roster that was believed had the name. `tentative`: only a roster that was not. */
export type Standing = 'confirmed' | 'tentative'

const shardCount = 64
/** Room for a million names in all. A longer text would block the process while it is read. */
const maxShardLength = 2 ** 20

type Shard = ReadonlyMap<string, Standing>

export class Members {
  readonly #store: KeeperStore
  /** The shards as they were read last. */
  readonly #shards: (Shard | undefined)[] = []

  constructor(store: KeeperStore) {
    this.#store = store
  }

  /** @throws StoreUnavailable */
  async readAll(): Promise<MembersRead> {
    const standings = new Map<string, Standing>()
    const unreadable = new Set<number>()
    await eachShard(async (index) => {
      try {
        const { shard, needsWriting } = await this.#read(index)
        for (const [name, standing] of shard) standings.set(name, standing)
        if (needsWriting) await this.#change(index, () => {})
      } catch (error) {
        if (!(error instanceof KeyFailure)) throw error
        unreadable.add(index)
      }
    })
    return { standings, isReadable: (username) => !unreadable.has(shardOf(username)) }
  }

  /** Enters the names of users who may have a subscription from now on. @throws StoreUnavailable @returns the names that could be entered */
  async enterAll(standings: ReadonlyMap<string, Standing>): Promise<string[]> {
    const entered: string[] = []
    const byShard = Array.from({ length: shardCount }, () => new Map<string, Standing>())
    for (const [name, standing] of standings) byShard[shardOf(name)]?.set(name, standing)
    await eachShard(async (index) => {
      const entries = byShard[index]
      if (entries === undefined || entries.size === 0) return
      try {
        await this.#change(index, (shard) => {
          for (const [name, standing] of entries) {
            if (shard.get(name) !== 'confirmed') shard.set(name, standing)
          }
        })
        entered.push(...entries.keys())
      } catch (error) {
        if (!(error instanceof KeyFailure)) throw error
      }
    })
    return entered
  }

  /** A name that is there already keeps its standing. @throws StoreUnavailable, KeyFailure */
  async enter(username: string): Promise<void> {
    await this.#change(shardOf(username), (shard) => {
      if (!shard.has(username)) shard.set(username, 'confirmed')
    })
  }

  /** Only under the claim of the user's record. @throws StoreUnavailable, KeyFailure */
  async remove(username: string): Promise<void> {
    await this.#change(shardOf(username), (shard) => shard.delete(username))
  }

  /** @throws StoreUnavailable, KeyFailure */
  async has(username: string): Promise<boolean> {
    return (await this.#read(shardOf(username))).shard.has(username)
  }

  async #read(index: number): Promise<{ shard: Shard; text: string | undefined; needsWriting: boolean }> {
    const key = keyOf(index)
    const stored = await this.#store.read(key, parseShard, { copy: this.#shards[index] })
    const { text, value: shard = new Map(), isDamaged } = stored
    this.#shards[index] = shard
    // Only a write shows that a key can be written again, and no name may enter or leave for long.
    return { shard, text, needsWriting: isDamaged || this.#store.hasFailed(key) }
  }

  async #change(index: number, change: (shard: Map<string, Standing>) => void): Promise<void> {
    const key = keyOf(index)
    await this.#store.untilStored(key, async () => {
      const { shard, text, needsWriting } = await this.#read(index)
      const changed = new Map(shard)
      change(changed)
      const news = textOf(changed)
      if (!needsWriting && news === textOf(shard)) return true
      if (!(await this.#store.compareAndSet(key, text, news))) return false
      this.#shards[index] = changed
      await this.#store.verify(key)
      return true
    })
  }
}

/** All members at one time. */
export interface MembersRead {
  readonly standings: ReadonlyMap<string, Standing>
  /** Whether the shard of this name could be read. */
  readonly isReadable: (username: string) => boolean
}

async function eachShard(run: (index: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: shardCount }, (_, index) => run(index)))
}

function shardOf(username: string): number {
  return (createHash('sha256').update(username).digest()[0] ?? 0) % shardCount
}

function keyOf(index: number): string {
  return `members:${index}`
}

/** @returns `undefined` for a text that is no shard */
function parseShard(text: string): Shard | undefined {
  const shard = text.length > maxShardLength ? undefined : parseJson(text)
  if (typeof shard !== 'object' || shard === null || Array.isArray(shard)) return undefined
  const entries = Object.entries(shard)
  if (!entries.every(([, code]) => code === 0 || code === 1)) return undefined
  return new Map(entries.map(([name, code]) => [name, code === 1 ? 'confirmed' : 'tentative']))
}

function textOf(shard: Shard): string {
  const entries = Array.from(shard, ([name, standing]) => [name, standing === 'confirmed' ? 1 : 0])
  return JSON.stringify(Object.fromEntries(entries))
}
