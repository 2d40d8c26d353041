/**
 * Which generation of the configuration is in force in this process: found in the store, or announced there. A store
 * that has lost everything, or was begun anew by another process, shows here, because its head says another one or none.
 */
import type { UpdateSubscriptionParametersInput } from '../subscriptions/update-input.js'
import type { Configuration, StoredGeneration } from './configuration.js'
import type { Problems } from './problems.js'
import type { RecordStore } from './record-store.js'
import { Overtaken } from './store-access.js'
import type { Head } from './stored-head.js'

export class GenerationInForce {
  readonly #records: RecordStore
  readonly #problems: Problems
  /** The configuration in force. */
  #configuration: Configuration
  /** Its generation, as it stood in the store when this process took or found it. */
  #generation: StoredGeneration | undefined
  /** The configuration that is to be in force: another one after a rotation that has not come to the store yet. */
  #wanted: Configuration
  /** What was announced last, also if the answer was lost: then the store may have heard of it all the same. */
  #announced: { readonly configuration: Configuration; readonly generation: StoredGeneration } | undefined

  constructor(
    { records, problems }: { records: RecordStore; problems: Problems },
    configuration: Configuration,
  ) {
    this.#records = records
    this.#problems = problems
    this.#configuration = configuration
    this.#wanted = configuration
  }

  get configuration(): Configuration {
    return this.#configuration
  }

  get generation(): StoredGeneration | undefined {
    return this.#generation
  }

  /** Whether the values that were asked for last are in force. */
  get isUpToDate(): boolean {
    return this.#generation !== undefined && this.#wanted === this.#configuration
  }

  /** Other values are to be in force, as soon as the store has heard of them. */
  want(changes: UpdateSubscriptionParametersInput): void {
    this.#wanted = this.#wanted.with(changes)
  }

  /**
   * Finds out whether the newest configuration is this one, or makes it so at the first look.
   *
   * @returns false if another one is newer
   */
  async find(): Promise<boolean> {
    const records = this.#records
    const wanted = this.#wanted
    const isChanged = wanted !== this.#configuration
    const wasOwn = records.isOwn
    let head = await records.head.read()
    if (this.#wanted !== wanted) throw new Overtaken()
    if (this.#generation !== undefined && head === undefined) {
      if (wasOwn) head = await this.#rewrite(this.#generation)
      // Whoever was at work writes it again, or else this process, as soon as it has the turn.
      else if (!isChanged) return true
    }
    this.#noteNewStore(head)
    const announced = this.#announced
    if (announced !== undefined && head !== undefined && isSame(announced.generation, head)) {
      this.#follow(announced.configuration, head)
    }
    if (this.#generation !== undefined && head !== undefined && !isChanged) {
      if (head.generation > this.#generation.generation) return false
      // An older head was restored from a backup.
      const isOlder = head.generation < this.#generation.generation
      if (isOlder && !(await records.head.announce(this.#generation))) throw new Overtaken()
      return true
    }
    if (head !== undefined && (await wanted.isThat(head))) {
      // Else one that was given another configuration before, and comes to the store after this process, would win.
      const isConfirmed = await records.head.change((present) => wanted.confirming(present ?? head))
      if (this.#wanted !== wanted || !isConfirmed) throw new Overtaken()
      return this.#follow(wanted, records.head.present ?? head)
    }
    if (this.#wanted !== wanted) throw new Overtaken()
    if (head !== undefined && this.#isOlderThan(head)) return false
    const next = await wanted.succeeding(head)
    if (this.#wanted !== wanted) throw new Overtaken()
    this.#announced = { configuration: wanted, generation: next }
    if (!(await records.head.announce(next))) throw new Overtaken()
    return this.#follow(wanted, next)
  }

  /** Looks whether another process has begun anew since this one looked last. @throws StoreFailure */
  async lookForNewStore(): Promise<void> {
    const head = this.#generation && (await this.#records.head.read())
    if (head !== undefined) this.#noteNewStore(head)
  }

  /** The store has lost everything, and who was at work before this process has not written it again. */
  async announceAgain(): Promise<void> {
    const { head } = this.#records
    if (this.#generation === undefined || !(await head.announce(this.#generation))) throw new Overtaken()
    this.leaveAll()
  }

  /** What the store has lost of this process's records is left over for the one at work. */
  leaveAll(): void {
    const { leftovers, users } = this.#records
    const before = leftovers.size
    for (const record of users.values()) leftovers.noteAll(record)
    if (leftovers.size === before) return
    this.#problems.tellOnce(
      'STORE',
      'The store has lost what was in it, and was begun anew: what this process remembers is passed on and checked.',
    )
  }

  /** If another process has begun anew with an empty store, its generations are no successors of this process's. */
  #noteNewStore(head: Head | undefined): void {
    if (this.#generation === undefined || head?.salt === this.#generation.salt) return
    this.leaveAll()
    this.#generation = undefined
  }

  /** Both at once: the values that are sent belong to the generation that is noted. */
  #follow(configuration: Configuration, generation: StoredGeneration): true {
    this.#configuration = configuration
    this.#generation = generation
    this.#announced = undefined
    // Who is known to be alive has to get these values all the same.
    for (const record of this.#records.users.values()) {
      record.isQuiet = false
      record.dueFrom = Math.min(record.dueFrom, performance.now())
    }
    return true
  }

  /** The store has lost everything that this process had written. */
  async #rewrite(generation: StoredGeneration): Promise<Head | undefined> {
    this.#problems.tellOnce('STORE', 'The store has lost what was in it: it is written again from memory.')
    await this.#records.rewrite(generation)
    return this.#records.head.present
  }

  #isOlderThan(head: StoredGeneration): boolean {
    // New values for an old configuration must not bring back its types and callback URL.
    if (this.#generation !== undefined) return head.generation > this.#generation.generation
    return this.#wanted.isOlderThan(head)
  }
}

/** Another process that announces the same as a generation of the same number has the same configuration. */
function isSame(one: StoredGeneration, other: StoredGeneration): boolean {
  return (
    one.generation === other.generation &&
    one.salt === other.salt &&
    one.hash === other.hash &&
    one.target === other.target
  )
}
