/**
 * The store as the keeper uses it. While the store fails every operation throws, and nothing may be sent; a fault of one
 * key alone is a fault of that key. Reports both.
 */
import { randomUUID } from 'node:crypto'
import { GuardedStore } from '../stores/guarded-store.js'
import type { KeyValueStore } from '../stores/key-value-store.js'
import type { Problems } from './reporter.js'
import { delay, storeTimeoutMs } from './timing.js'

/** The store throws, hangs, or does not keep what is written. */
export class StoreUnavailable extends Error {}

/** The store works, but what it holds under one key cannot be read or written. */
export class KeyFailure extends Error {}

/** What stands under a key: the text, for the next `compareAndSet`, and its value. */
export interface Stored<Value> {
  readonly text: string | undefined
  readonly value: Value | undefined
  /** Whether the text cannot be read, and the value is a copy from memory, to be written again. */
  readonly isDamaged: boolean
}

/** Written and read to find out whether the store works. */
const checkKey = 'check'
/** How often a value that several processes change is tried, and the longest pause after the first attempt. */
const maxRounds = 10
const roundPauseMs = 20
/** Losses within this time are one: while a store fails over, it may lose what it has just confirmed. */
const oneLossMs = 60_000

/** For stores without `compareAndSet`: the writes of one process, one after the other. */
const queues = new WeakMap<KeyValueStore, Promise<unknown>>()

export class KeeperStore {
  readonly #store: KeyValueStore
  readonly #guarded: GuardedStore
  readonly #name: string
  readonly #problems: Problems
  readonly #failedKeys = new Map<string, 'read' | 'write'>()
  #isFailing = false
  #checking: Promise<void> | undefined
  #nextCheckFrom = 0
  /** When the last loss was reported; monotonic. */
  #lossSince = Number.NEGATIVE_INFINITY

  constructor(store: KeyValueStore, name: string, problems: Problems) {
    this.#store = store
    this.#guarded = new GuardedStore(store, storeTimeoutMs)
    this.#name = name
    this.#problems = problems
  }

  get isFailing(): boolean {
    return this.#isFailing
  }

  get isForOneProcess(): boolean {
    return !this.#guarded.canCompareAndSet
  }

  /**
   * @param parse - returns `undefined` for a text that it cannot read
   * @param copy - the value in memory, which takes the place of one that cannot be read
   * @param isExpected - whether there must be something: some stores answer a failure with nothing, so nothing is
   * believed only of a store that has just proven to work
   * @throws StoreUnavailable, KeyFailure
   */
  async read<Value>(
    key: string,
    parse: (text: string) => Value | undefined,
    { copy, isExpected = false }: { copy?: Value | undefined; isExpected?: boolean } = {},
  ): Promise<Stored<Value>> {
    let text = await this.#get(key)
    if (text === undefined && isExpected) {
      await this.#check()
      text = await this.#get(key)
    }
    const value = text === undefined ? undefined : parse(text)
    if (text === undefined || value !== undefined) {
      // A key that can be read may be one that cannot be written.
      if (this.#failedKeys.get(key) === 'read') this.resolve(key)
      return { text, value, isDamaged: false }
    }
    const error = this.#keyFailed(key, 'read')
    if (copy === undefined) throw error
    return { text, value: copy, isDamaged: true }
  }

  /**
   * @returns whether the value was stored; after a first attempt without an answer, false may mean that it was, too
   * @throws StoreUnavailable, KeyFailure: the value may be stored all the same, now or later
   */
  async compareAndSet(
    key: string,
    expected: string | undefined,
    value: string,
    ttlMs?: number,
  ): Promise<boolean> {
    const isStored = this.isForOneProcess
      ? await this.#queued(() => this.#compareThenSet(key, expected, value, ttlMs))
      : await this.#attempt(key, 'write', async (name, isRepeat) => {
          // The first attempt may have been stored, and its answer lost: no other process writes the same text.
          if (isRepeat && (await this.#guarded.get(name)) === value) return true
          return this.#guarded.compareAndSet(name, expected, value, ttlMs)
        })
    if (isStored) this.resolve(key)
    return isStored
  }

  /** @throws StoreUnavailable, KeyFailure */
  async delete(key: string): Promise<void> {
    await this.#attempt(key, 'write', (name) => this.#guarded.delete(name))
  }

  /**
   * Repeats reading, changing and writing a value until no other process comes between.
   *
   * @param attempt - returns whether its value is stored
   * @throws StoreUnavailable, KeyFailure: also if it never is, as in a store that reads what it no longer holds
   */
  async untilStored(key: string, attempt: () => Promise<boolean>): Promise<void> {
    for (let round = 1; round <= maxRounds; round++) {
      if (await attempt()) return this.resolve(key)
      await delay(Math.random() * round * roundPauseMs)
    }
    throw this.#keyFailed(key, 'write', new Error('The value was another one at every attempt.'))
  }

  /** Some stores forget what they have confirmed. @throws StoreUnavailable if there is nothing under the key; KeyFailure */
  async verify(key: string): Promise<void> {
    if ((await this.#get(key)) === undefined) throw this.#failed(new Error(forgetfulMessage))
  }

  /** Looks whether a store that failed works again, every few seconds. */
  async checkAgain(): Promise<void> {
    if (!this.#isFailing || this.#checking !== undefined || performance.now() < this.#nextCheckFrom) return
    try {
      await this.#check()
    } catch {
      this.#nextCheckFrom = performance.now() + storeTimeoutMs
    }
  }

  /** Whether the key could not be read or written, and nothing has shown since that it works. */
  hasFailed(key: string): boolean {
    return this.#failedKeys.has(key)
  }

  /** Nothing has to be read or written under the key any more, or all of it could be. */
  resolve(key: string): void {
    if (this.#failedKeys.delete(key)) this.#problems.resolve('STORE', key)
  }

  /**
   * What this process had read from the store is no longer there. The same loss shows at many keys, and at some of them
   * late: what was last seen before a loss was reported belongs to that loss.
   *
   * @param seenSince - when it was there for certain; monotonic
   */
  reportLoss(seenSince: number): void {
    if (seenSince < this.#lossSince + oneLossMs) return
    this.#lossSince = performance.now()
    this.#problems.reportOnce('STORE', lossMessage)
  }

  #get(key: string): Promise<string | undefined> {
    return this.#attempt(key, 'read', (name) => this.#guarded.get(name))
  }

  /** Nothing else writes between these steps: there is one process, and its writes are queued. */
  async #compareThenSet(
    key: string,
    expected: string | undefined,
    value: string,
    ttlMs: number | undefined,
  ): Promise<boolean> {
    if ((await this.#get(key)) !== expected) return false
    await this.#attempt(key, 'write', (name) => this.#guarded.set(name, value, ttlMs))
    await this.verify(key)
    return true
  }

  #queued<Value>(work: () => Promise<Value>): Promise<Value> {
    const result = (queues.get(this.#store) ?? Promise.resolve()).then(work)
    queues.set(
      this.#store,
      result.catch(() => {}),
    )
    return result
  }

  async #attempt<Value>(
    key: string,
    access: 'read' | 'write',
    run: (name: string, isRepeat: boolean) => Promise<Value>,
  ): Promise<Value> {
    if (this.#isFailing) throw new StoreUnavailable(failingMessage)
    const name = this.#nameOf(key)
    try {
      return await run(name, false)
    } catch {
      await this.#check()
    }
    try {
      return await run(name, true)
    } catch (cause) {
      // Another key works, so it was no fault of a moment: the fault is this key's.
      throw this.#keyFailed(key, access, cause)
    }
  }

  /** @throws StoreUnavailable */
  #check(): Promise<void> {
    this.#checking ??= this.#writeAndRead().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async #writeAndRead(): Promise<void> {
    const name = this.#nameOf(checkKey)
    try {
      await this.#guarded.set(name, randomUUID())
      // Another process may have written its own value meanwhile.
      if ((await this.#guarded.get(name)) === undefined) throw new Error(forgetfulMessage)
    } catch (error) {
      throw this.#failed(error)
    }
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#problems.resolve('STORE')
  }

  #failed(error: unknown): StoreUnavailable {
    this.#isFailing = true
    this.#problems.begin('STORE', failingMessage, { error })
    return new StoreUnavailable(failingMessage, { cause: error })
  }

  #keyFailed(key: string, access: 'read' | 'write', cause?: unknown): KeyFailure {
    const error = new KeyFailure(keyMessage(this.#nameOf(key)), { cause })
    if (this.#failedKeys.get(key) !== 'write') this.#failedKeys.set(key, access)
    this.#problems.begin('STORE', error.message, { about: key, error: cause ?? error })
    return error
  }

  #nameOf(key: string): string {
    return `${this.#name}:${key}`
  }
}

const failingMessage =
  'The store fails, hangs or does not keep what is written. Until it works again nothing is sent.'
const forgetfulMessage = 'The store does not hold what was just written to it.'
const lossMessage =
  'The store has lost what was in it, or an older copy took its place: what this process knows is written again. ' +
  'Look whether the store evicts keys, and whether its replicas and backups are what they should be.'

function keyMessage(name: string): string {
  return (
    `What the store holds under "${name}" cannot be read or written: it is damaged, or a newer version wrote it. ` +
    'Run the newer version; or delete the key, and whatever exists is looked at anew.'
  )
}
