/** The keeper's access to its store. While the store fails, every method throws, and nothing is sent. */
import { createHash, randomUUID } from 'node:crypto'
import pMemoize from 'p-memoize'
import * as z from 'zod'
import { parseJson } from '../shared/validation.js'
import { withTimeLimit } from '../shared/waits.js'
import { type KeyValueStore, storedText } from '../stores/key-value-store.js'
import { type Problems, reasonOf } from './reporter.js'
import { delay, storeTimeoutMs, withPauses } from './timing.js'

/** The store throws, hangs, or does not keep what is written. */
export class StoreFailure extends Error {}

/** Replaces a deleted value, because only `compareAndSet` compares the old value. Counts as missing. */
export const goneMark = '"gone"'

export class KeeperStore {
  readonly #prefix: string
  /** Whether the last test of the store failed. */
  isFailing = false
  #isTested = false
  /** Begins what this process writes to test the store. */
  readonly #mark = `{"check":"${randomUUID().slice(0, 23)}`

  /** @param service - a part of every key, so that the records of another service are not found */
  constructor(
    private readonly store: KeyValueStore,
    name: string,
    service: string | undefined,
    private readonly problems: Problems,
  ) {
    this.#prefix = service === undefined ? name : `${name}:${hashOf(service).slice(0, 12)}`
  }

  /** An unreadable value counts as missing, and is reported. @throws StoreFailure */
  async read<Value>(key: string, schema: z.ZodType<Value>, isRight: (value: Value) => boolean = () => true) {
    // Nothing may be sent before it is known that an id can be kept.
    if (!this.#isTested) await this.tryWrite()
    let text = await this.#get(key)
    if (text === undefined) {
      // Some stores return nothing when they fail, so a missing value counts only after a test of the store.
      await this.tryWrite()
      text = await this.#get(key)
    }
    if (text === undefined || text === goneMark) return { text }
    const { data } = schema.safeParse(parseJson(text))
    const value = data !== undefined && isRight(data) ? data : undefined
    if (value === undefined) this.problems.reportOnce('STORE', unreadableMessage(this.#nameOf(key)), key)
    return { text, value }
  }

  /** @returns whether the text was stored; after a failure it may be stored, too @throws StoreFailure */
  async write(key: string, expected: string | undefined, text: string, ttlMs?: number): Promise<boolean> {
    const isStored = await this.#attempt('write', key, () => this.#swap(key, expected, text, ttlMs))
    // A client library may repeat a write whose answer was lost: the repetition finds its own text.
    return isStored || (await this.#get(key)) === text
  }

  async #swap(key: string, expected: string | undefined, text: string, ttlMs?: number): Promise<boolean> {
    const name = this.#nameOf(key)
    if (this.store.compareAndSet === undefined) {
      // Nothing else writes between these steps: the only process writes a key once at a time.
      if (storedText(await this.store.get(name)) !== expected) return false
      await this.store.set(name, text, ttlMs)
      return true
    }
    const isStored: unknown = await this.store.compareAndSet(name, expected, text, ttlMs)
    if (typeof isStored === 'boolean') return isStored
    // An unclear result must not be guessed.
    const what = isStored === undefined ? 'nothing' : `a value of type ${typeof isStored}`
    throw new TypeError(wrongResultMessage(what))
  }

  /**
   * Reads a value and writes the next one, until no other process has written in between.
   *
   * @param change - returns the next value; `undefined` leaves the value as it is
   * @throws StoreFailure: also if another process writes each time
   */
  async update<Value>(
    key: string,
    schema: z.ZodType<Value>,
    change: (value: Value | undefined, isDamaged: boolean) => Value | undefined | Promise<Value | undefined>,
  ): Promise<Value | undefined> {
    for (let round = 1; round <= 10; round++) {
      const { text, value } = await this.read(key, schema)
      const next = await change(value, text !== undefined && value === undefined)
      if (next === undefined || (await this.write(key, text, JSON.stringify(next)))) return next
      await delay(Math.random() * round * 20)
    }
    throw this.#fail('write', key, new Error(unwrittenMessage))
  }

  /** Reports a failed read or write of a key, until the same succeeds. */
  #fail(verb: 'read' | 'write', key: string, cause: unknown): StoreFailure {
    const failure = new StoreFailure(keyMessage(verb, this.#nameOf(key), reasonOf(cause)), { cause })
    this.problems.begin('STORE', failure.message, { about: `${verb} ${key}`, error: cause })
    return failure
  }

  /** Tests the store. @throws StoreFailure */
  readonly tryWrite = pMemoize(() => this.#tryWrite(), { cache: false })

  async #tryWrite(): Promise<void> {
    const name = this.#nameOf('check')
    try {
      // Like a record: some stores parse or format JSON, cut long texts, or change letters.
      const sample = `","sample":"${'Aa'.repeat(500)}"}`
      const next = () => this.#mark + randomUUID().slice(23) + sample
      const written = next()
      await inTime(() => this.store.set(name, written))
      const text = storedText(await inTime(() => this.store.get(name)))
      // Another process may have written its own value meanwhile.
      if (text !== written && (!text?.endsWith(sample) || text.startsWith(this.#mark)))
        throw new Error(forgetfulMessage)
      if (await inTime(() => this.#swap('check', next(), text)))
        throw new TypeError(wrongResultMessage('true although another value was there'))
    } catch (error) {
      const message = `${failingMessage} The last error: ${reasonOf(error)}`
      this.isFailing = true
      this.problems.begin('STORE', message, { error })
      throw new StoreFailure(message, { cause: error })
    }
    this.isFailing = false
    this.#isTested = true
    this.problems.resolve('STORE')
  }

  #get(key: string): Promise<string | undefined> {
    return this.#attempt('read', key, async () => storedText(await this.store.get(this.#nameOf(key))))
  }

  async #attempt<T>(verb: 'read' | 'write', key: string, operate: () => Promise<T>): Promise<T> {
    if (this.isFailing) throw new StoreFailure(failingMessage)
    const result = await inTime(operate).catch(async () => {
      await this.tryWrite()
      // Once more, because the store may only now work again: then nothing is wrong with this key.
      return inTime(operate).catch((cause: unknown) => {
        throw this.#fail(verb, key, cause)
      })
    })
    this.problems.resolve('STORE', `${verb} ${key}`)
    return result
  }

  #nameOf(key: string): string {
    return `${this.#prefix}:${key}`
  }
}

const shardCount = 64
const shardSchema = z.array(z.string()).readonly()

/** The names of all users who may have a record, in 64 keys of the store. */
export class IndexOfNames {
  /** One change of a shard at a time. */
  readonly #lastChanges: Promise<unknown>[] = []

  constructor(private readonly store: KeeperStore) {}

  /** @throws StoreFailure */
  async read(): Promise<ReadonlySet<string>> {
    const readShard = (_: unknown, shard: number) => this.store.read(keyOf(shard), shardSchema)
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
  remove(username: string): Promise<unknown> {
    return this.#change(shardOf(username), (names) => names.filter((name) => name !== username))
  }

  #change(shard: number, change: (names: readonly string[]) => readonly string[]): Promise<unknown> {
    const key = keyOf(shard)
    const changed = (this.#lastChanges[shard] ?? Promise.resolve()).then(() =>
      this.store.update(key, shardSchema, (value = []) => {
        const names = change(value)
        return names.length === value.length ? undefined : names
      }),
    )
    this.#lastChanges[shard] = changed.catch(() => {})
    return changed
  }
}

const shardOf = (username: string) => quickHash(username) % shardCount
const keyOf = (shard: number) => `members:${shard}`

/** A plain hash of 32 bits: `node:crypto` takes 20 times as long, which matters with 100,000 names. */
export function quickHash(text: string): number {
  let hash = 0
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** A hash that stands for a text in a key. A part of its 256 bits is enough. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

const inTime = <Result>(operate: () => Result) => withTimeLimit(storeTimeoutMs, operate)

const failingMessage =
  'The store fails, hangs or does not keep what is written: repair it, or its client (docs/stores.md). Until it works ' +
  'again nothing is sent.'
const forgetfulMessage =
  'The store does not hold what was just written to it: it holds another text, a part of it, an older one, or nothing.'
const keyMessage = (verb: string, name: string, reason: string) =>
  `The store cannot ${verb} "${name}", and works otherwise. Repair the key or delete it. The last error: ${reason}`
const unreadableMessage = (name: string) =>
  `What the store holds under "${name}" cannot be read: it is damaged. It counts as missing and is written anew.`
const wrongResultMessage = (returned: string) =>
  `The store's \`compareAndSet\` returned ${returned}. It must return true if it wrote the value, and false if another ` +
  'one was there (docs/stores.md, Your own). Correct the store: until then nothing is sent.'
const unwrittenMessage =
  'no attempt to write it succeeded. Another process changes it each time, or `compareAndSet` compares wrongly, or `get` ' +
  'returns old values (docs/stores.md, Your own).'
export const lossMessage =
  'The store has lost data, or an older copy took its place: what this process knows is written again. Check whether the ' +
  'store evicts keys, and whether a replica or a backup with old data took over.'
