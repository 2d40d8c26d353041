/**
 * The records in the store: chunks of a hundred under one head. A chunk is written before the head counts it, so that
 * the head never promises what is not there; nothing has to be listed to find everything again.
 */
import { randomUUID } from 'node:crypto'
import { type Chunk, keyOf, markStale, newChunk, parseChunk, recordsPerChunk, textOf } from './chunk.js'
import type { StoredGeneration } from './configuration.js'
import { carryOver } from './deliveries.js'
import { Leftovers } from './handover.js'
import { Overtaken, type StoreAccess } from './store-access.js'
import { type Head, StoredHead } from './stored-head.js'
import { fromStored, type LoadFacts } from './stored-record.js'
import type { UserRecord } from './user-record.js'

export class RecordStore {
  readonly #store: StoreAccess
  readonly #onIdDropped: (id: number) => void
  readonly head: StoredHead
  readonly users = new Map<string, UserRecord>()
  /** Every recorded id, also of subscriptions that are to be ended. */
  readonly byId = new Map<number, UserRecord>()
  /** What this process knows of a time before another one was at work. */
  readonly leftovers = new Leftovers()
  /** How often all records were read: each time they are others. */
  timesLoaded = 0
  #chunks: Chunk[] = []
  #epoch: string | undefined

  /** @param onIdDropped - told of ids that were recorded here, and are not in what another process has written */
  constructor(store: StoreAccess, onIdDropped: (id: number) => void) {
    this.#store = store
    this.#onIdDropped = onIdDropped
    this.head = new StoredHead(store)
  }

  /** Another process writes from now on. */
  disown(): void {
    this.#epoch = undefined
  }

  /** Whether nobody else has written the chunks since this process did. */
  get isOwn(): boolean {
    if (this.#epoch === undefined) return false
    // A store that has lost everything knows of nobody.
    return this.head.present === undefined || this.head.present.epoch === this.#epoch
  }

  /**
   * Becomes the one who writes: reads everything that another process has written.
   *
   * @returns the number of chunks that are missing
   * @throws StoreFailure, Overtaken
   */
  async open(facts: Omit<LoadFacts, 'wasClosed'>): Promise<number> {
    const head = this.head.present
    if (head === undefined) throw new Overtaken()
    let missing = 0
    if (head.epoch !== this.#epoch) missing = await this.load({ ...facts, wasClosed: head.isClosed })
    const epoch = this.#epoch ?? randomUUID()
    const isNoted = await this.head.change((present) => ({ ...(present ?? head), epoch, isClosed: false }))
    if (!isNoted) throw new Overtaken()
    const isTakenOver = epoch !== this.#epoch && !head.isClosed
    this.#epoch = epoch
    // With its mark on every chunk, a process that does not know yet that it lost its turn can write none any more.
    if (isTakenOver) for (const chunk of this.#chunks) await this.save(chunk)
    return missing
  }

  /** Notes a clean end. @returns false if the head has changed meanwhile, or is lost. @throws StoreFailure */
  async close(): Promise<boolean> {
    const head = this.head.present
    return head !== undefined && this.head.change((present) => ({ ...(present ?? head), isClosed: true }))
  }

  /** Reads all records anew. What this process knew and had not written is forgotten. @throws StoreFailure */
  async load(facts: LoadFacts): Promise<number> {
    const count = this.head.present?.chunks ?? 0
    const chunks: Chunk[] = []
    let missing = 0
    for (let index = 0; index < count; index++) {
      const text = await this.#store.readOrProveEmpty(keyOf({ index }))
      const parsed = text === undefined ? undefined : parseChunk(text)
      if (parsed === undefined) missing++
      const records = parsed?.records.map((stored) => fromStored(stored, facts))
      chunks.push(newChunk(index, text, records))
    }
    this.timesLoaded++
    const seenBefore = new Map(this.byId)
    for (const record of this.users.values()) this.leftovers.note(record)
    this.#epoch = undefined
    this.#chunks = chunks
    this.users.clear()
    this.byId.clear()
    for (const chunk of chunks) {
      // That the one who wrote it did not end cleanly has to outlive the head's saying so.
      chunk.isStale = !facts.wasClosed && chunk.records.length > 0
      for (const record of chunk.records) {
        record.chunk = chunk
        this.users.set(record.username, record)
        this.index(record)
      }
    }
    for (const [id, earlier] of seenBefore) {
      const record = this.byId.get(id)
      if (record === undefined) this.#onIdDropped(id)
      else carryOver(earlier, record, id)
    }
    return missing
  }

  /** The store has lost everything: it is written again from memory. @throws StoreFailure, Overtaken */
  async rewrite(generation: StoredGeneration): Promise<void> {
    const epoch = randomUUID()
    for (const chunk of this.#chunks) {
      chunk.text = await this.#store.read(keyOf(chunk))
      await this.save(chunk)
    }
    const { targets } = this.head
    const chunks = this.#chunks.length
    const head: Head = { ...generation, targets, version: 1, epoch, isClosed: false, chunks, leftovers: [] }
    if (!(await this.head.change(() => head))) throw new Overtaken()
    this.#epoch = epoch
  }

  /** Finds the records of ids, for deliveries. */
  index(record: UserRecord): void {
    for (const { id } of record.slots) if (id !== undefined) this.byId.set(id, record)
  }

  unindex(id: number): void {
    this.byId.delete(id)
  }

  /** Gives a record a place in a chunk, if it has none. */
  place(record: UserRecord): Chunk {
    if (record.chunk !== undefined) return record.chunk
    let chunk = this.#chunks.findLast(({ records }) => records.length < recordsPerChunk)
    if (chunk === undefined) {
      chunk = newChunk(this.#chunks.length, undefined)
      this.#chunks.push(chunk)
    }
    chunk.records.push(record)
    record.chunk = chunk
    return chunk
  }

  /** Forgets a user for whom nothing can exist any more. */
  forget(record: UserRecord): void {
    if (this.users.get(record.username) === record) this.users.delete(record.username)
    const { chunk } = record
    if (chunk === undefined) return
    chunk.records.splice(chunk.records.indexOf(record), 1)
    markStale(record)
    record.chunk = undefined
  }

  /**
   * Writes a chunk and reads it back. Everybody who asks while a write is in flight shares the next one.
   *
   * @throws StoreFailure, Overtaken
   */
  save(chunk: Chunk): Promise<void> {
    chunk.isReadBack = true
    return this.#saveNext(chunk)
  }

  /** Writes what has changed, without reading it back: only proofs could be lost. @throws StoreFailure, Overtaken */
  async saveStale(): Promise<void> {
    for (const chunk of this.#chunks) if (chunk.isStale) await this.#saveNext(chunk)
  }

  #saveNext(chunk: Chunk): Promise<void> {
    chunk.nextWrite ??= (chunk.writing ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        chunk.writing = chunk.nextWrite
        chunk.nextWrite = undefined
        return this.#write(chunk)
      })
    return chunk.nextWrite
  }

  /** Whether the store still says of a chunk what this process wrote. @throws StoreFailure */
  async isCurrent(chunk: Chunk): Promise<boolean> {
    await chunk.writing?.catch(() => {})
    if (chunk.text === undefined) await this.save(chunk)
    return (await this.#store.read(keyOf(chunk))) === chunk.text
  }

  async #write(chunk: Chunk): Promise<void> {
    // Of a time before another process was at work.
    if (this.#chunks[chunk.index] !== chunk) throw new Overtaken()
    const key = keyOf(chunk)
    const text = textOf(chunk, this.#epoch)
    const unwritten = chunk.records.flatMap(({ slots }) => slots.filter((slot) => slot.isUnwritten))
    const { isReadBack } = chunk
    chunk.isStale = false
    chunk.isReadBack = false
    try {
      if (text !== chunk.text) {
        if (!(await this.#store.replace(key, chunk.text, text))) await this.#adopt(key, chunk, text)
      }
      if (isReadBack) await this.#store.verify(key, text)
      chunk.text = text
      await this.#count(chunk.index)
      for (const slot of unwritten) slot.isUnwritten = false
    } catch (error) {
      chunk.isStale = true
      if (isReadBack) chunk.isReadBack = true
      // Whatever stands there now: the next write looks.
      chunk.text = undefined
      throw error
    }
  }

  /** Another text stands there: an earlier write of ours whose answer was lost, or another process is at work. */
  async #adopt(key: string, chunk: Chunk, text: string): Promise<void> {
    const present = await this.#store.read(key)
    if (present === text) return
    const own = this.#epoch
    const head = await this.head.read()
    if (own === undefined || head?.epoch !== own) throw new Overtaken()
    const isCounted = chunk.index < head.chunks
    if (isCounted && present !== undefined && parseChunk(present)?.by !== own) {
      // By one that had lost its turn, after this process had read the chunk: all has to be read again.
      this.disown()
      throw new Overtaken()
    }
    if (!(await this.#store.replace(key, present, text))) throw new Overtaken()
    chunk.text = text
  }

  /** A chunk that the head does not count yet was new. */
  async #count(index: number): Promise<void> {
    const { present } = this.head
    if (present === undefined || present.chunks > index) return
    const isCounted = await this.head.change((head) => {
      if (head === undefined || head.epoch !== this.#epoch) throw new Overtaken()
      return { ...head, chunks: Math.max(head.chunks, index + 1) }
    })
    if (isCounted) return
    await this.head.read()
    if (!this.isOwn) throw new Overtaken()
    return this.#count(index)
  }
}
