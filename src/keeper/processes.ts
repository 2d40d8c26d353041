/**
 * The processes that work on the roster, from their first synchronization on: each counts up a number of its own, all in one
 * key of the store. A hint for speed: it divides the work. The only thing it decides is whether a superseded configuration
 * may come back.
 */
import * as z from 'zod'
import { type KeeperStore, quickHash } from './keeper-store.js'
import { countSchema } from './rules/record.js'
import { longAgo, now } from './timing.js'

const storeKey = 'processes'
const storedSchema = z.record(z.string(), z.object({ count: countSchema, generation: countSchema }))
type Stored = z.output<typeof storedSchema>

/** A process whose number has not changed for this long is dead. */
const lifeMs = 90_000
/** If two looks are further apart, a process may have counted up and died in between. */
const longestPauseMs = 30_000

export class Processes {
  readonly #id = (Math.random() * 2 ** 53).toString(36)
  /** How often this process has counted up; 0: it has not begun, or has left. */
  #beats = 0
  /** When this process last looked at the others, and last had a reason to believe that a newer configuration is in use. */
  #lookedSince = longAgo
  #newerSince = longAgo
  /** The others, dead ones included, and since when this process has seen each number. */
  readonly #others = new Map<string, Stored[string] & { readonly changedSince: number }>()
  /** The processes that share the work, this one included. */
  sharers: readonly string[] = [this.#id]

  constructor(private readonly store: KeeperStore) {}

  /** Whether this process is to be the first to work on the user: by the highest hash (rendezvous hashing). */
  isFirstFor(username: string): boolean {
    if (this.sharers.length === 1) return true
    const weights = this.sharers.map((id) => quickHash(id + username))
    return quickHash(this.#id + username) === Math.max(...weights)
  }

  /** Whether this process has seen for long enough that no process with a newer configuration counts up any more. */
  get areNewerGone(): boolean {
    return this.#lookedSince - this.#newerSince >= lifeMs
  }

  noteNewer(): void {
    this.#newerSince = now()
  }

  /** The others need not wait until this process looks dead. @throws StoreFailure */
  async leave(): Promise<void> {
    if (this.#beats === 0) return
    this.#beats = 0
    await this.#write()
  }

  /** Counts up, and looks at the others. @throws StoreFailure */
  async beat(generation: number): Promise<void> {
    const count = this.#beats + 1
    await this.#write({ count, generation })
    this.#beats = count
    const sharers = this.#living().filter(([, other]) => other.generation === generation)
    this.sharers = [this.#id, ...sharers.map(([id]) => id)]
  }

  /** @param own - missing: this process leaves */
  #write(own?: Stored[string]): Promise<unknown> {
    return this.store.update(storeKey, storedSchema, (value = {}) => {
      this.#see(value, own?.generation ?? 0)
      const living = this.#living().map(([id, { count, generation }]) => [id, { count, generation }])
      return Object.fromEntries(own === undefined ? living : [...living, [this.#id, own]])
    })
  }

  #see(stored: Stored, generation: number): void {
    // While the store was down, the others could not count: their silence proves nothing.
    if (now() - this.#lookedSince > longestPauseMs) this.noteNewer()
    this.#lookedSince = now()
    for (const id of this.#others.keys()) if (stored[id] === undefined) this.#others.delete(id)
    for (const [id, seen] of Object.entries(stored)) {
      if (id === this.#id || this.#others.get(id)?.count === seen.count) continue
      this.#others.set(id, { ...seen, changedSince: now() })
      if (seen.generation > generation) this.noteNewer()
    }
  }

  #living() {
    return [...this.#others].filter(([, { changedSince }]) => now() - changedSince < lifeMs)
  }
}
