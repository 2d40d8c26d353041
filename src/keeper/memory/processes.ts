/**
 * The processes that watch the roster: each counts up a number of its own, all in one key of the store. A hint for speed: it
 * divides the work. The only thing it decides is whether a superseded configuration may come back.
 */
import * as z from 'zod'
import { countSchema } from '../rules/record.js'
import { now } from '../timing.js'
import { type KeeperStore, unlessKeyFails } from './keeper-store.js'

const storeKey = 'processes'
const storedSchema = z.record(z.string(), z.object({ count: countSchema, generation: countSchema }))
type Stored = z.output<typeof storedSchema>

/** A process whose number has not changed for this long is dead. */
export const lifeMs = 90_000

export class Processes {
  readonly #store: KeeperStore
  readonly #id = (Math.random() * 2 ** 53).toString(36)
  /** 0: this process does not watch. */
  #count = 0
  /** The others, dead ones included, and since when this process has seen each number; monotonic. */
  readonly #others = new Map<string, Stored[string] & { readonly changedSince: number }>()
  /** The processes that share the work, this one included. */
  #sharers: readonly string[] = [this.#id]

  constructor(store: KeeperStore) {
    this.#store = store
  }

  /** How many processes share the work. */
  get count(): number {
    return this.#sharers.length
  }

  /** Whether this process is to be the first to work on the user: by the highest hash (rendezvous hashing). */
  isFirstFor(username: string): boolean {
    if (this.#sharers.length === 1) return true
    const weights = this.#sharers.map((id) => quickHash(id + username))
    return quickHash(this.#id + username) === Math.max(...weights)
  }

  /** Whether a process with a newer configuration lives. */
  hasNewer(generation: number): boolean {
    return this.#living().some(([, other]) => other.generation > generation)
  }

  /** From the next beat on. */
  watch(): void {
    this.#count ||= 1
  }

  /** The others need not wait until this process looks dead. @throws StoreFailure */
  leave(generation: number): Promise<void> {
    this.#count = 0
    return this.beat(generation)
  }

  /** Counts up, and looks at the others. @throws StoreFailure */
  async beat(generation: number): Promise<void> {
    // Without this key the work is not divided.
    await unlessKeyFails(this.#store.untilStored(storeKey, () => this.#write(generation)))
    const sharers = this.#living().filter(([, other]) => other.generation === generation)
    this.#sharers = [this.#id, ...sharers.map(([id]) => id)]
  }

  async #write(generation: number): Promise<boolean> {
    const { text, value = {} } = await this.#store.read(storeKey, storedSchema)
    this.#see(value)
    const living = this.#living().map(([id, { count, generation }]) => [id, { count, generation }])
    const own = this.#count > 0 ? [[this.#id, { count: ++this.#count, generation }]] : []
    const next = JSON.stringify(Object.fromEntries([...living, ...own]))
    return next === text || this.#store.compareAndSet(storeKey, text, next)
  }

  #see(stored: Stored): void {
    for (const id of this.#others.keys()) if (stored[id] === undefined) this.#others.delete(id)
    for (const [id, seen] of Object.entries(stored)) {
      if (id !== this.#id && this.#others.get(id)?.count !== seen.count)
        this.#others.set(id, { ...seen, changedSince: now() })
    }
  }

  #living() {
    return [...this.#others].filter(([, { changedSince }]) => now() - changedSince < lifeMs)
  }
}

/** A plain hash of 32 bits: `node:crypto` takes 20 times as long, which matters with 100,000 names. */
export function quickHash(text: string): number {
  let hash = 0
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}
