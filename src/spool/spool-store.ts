/**
 * What is on the disk: the deliveries that wait, in the order in which they are due, and the bodies that could not be
 * read. Nothing of it is kept in memory.
 */
import type { Database, RangeOptions, RootDatabase } from 'lmdb'
import { type Issue, SpoolError } from '../errors.js'
import { messageOf } from '../shared/excerpt.js'
import { DataFile } from './data-file.js'
import { bytesOf, countOf, type Measures, measure } from './measures.js'

/** A delivery that waits. */
export interface Entry {
  /** Counts up, over all processes: the order in which deliveries were kept. */
  readonly id: number
  /** When it is to be tried again, on the clock of the deliverer; 0 if it has never been tried. */
  readonly dueAt: number
  readonly history: History
  /** The delivery as JSON. */
  readonly text: string
}

/** What has become of a delivery until now. */
export interface History {
  /** When it was kept, in milliseconds since 1970. */
  readonly keptAt: number
  /** How often it has failed. */
  readonly attempts: number
  /** When it was last reported as stuck, on the clock of the deliverer; missing if never. */
  readonly reportedAt?: number
}

/** A body that was kept although it is no delivery, or none that this process can read. */
export interface InvalidBody {
  /** For `discardInvalid`. */
  readonly id: number
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** What was received: text, bytes or a parsed value. The JSON text of a delivery that `keep` had kept. */
  readonly body: unknown
  /** Why it is no delivery. */
  readonly issues: readonly Issue[]
}

type StoredBody = Omit<InvalidBody, 'id'>
type EntryKey = [dueAt: number, id: number]
type Ids = Pick<ReadonlySet<number>, 'has'>

/** The entries that were tried. */
const tried: RangeOptions = { start: [1, 0] }

/** How much is kept of bodies that are no deliveries, in bytes. */
const maxInvalidBytes = 16 * 2 ** 20

/** What may wait in memory for a disk that is slow, in bytes. */
const maxUnwrittenBytes = 64 * 2 ** 20

/** The longest value that needs no pages next to each other, in bytes. */
const maxInlineBytes = 1_900

/** What the file has to have free for everything but what is added: removing, postponing. */
const spareBytes = 2 ** 20
const spareBytesPerDelivery = 2 ** 14

/** How many bytes of the file a byte that is added may take: pages may be half empty after they are split. */
const fileBytesPerByte = 3

export interface SpoolStoreLimits {
  readonly maxBytes: number
  /** How many entries may be removed or postponed at the same time. */
  readonly concurrency: number
}

export class SpoolStore {
  readonly #root: RootDatabase
  /** Values are a line with the history, then the delivery. */
  readonly #entries: Database<string, EntryKey>
  /** What the receiver could not read. */
  readonly #invalid: Database<StoredBody, number>
  /** What was read once, by the receiver, and cannot be read any more: these are not dropped for room. */
  readonly #unreadable: Database<StoredBody, number>
  readonly #file: DataFile
  readonly #maxBytes: number
  readonly #spareBytes: number
  #unwrittenBytes = 0
  #lastId: number
  /** Measured again after each write, when it is needed. */
  #measured: Measures | undefined

  private constructor(root: RootDatabase, file: DataFile, { maxBytes, concurrency }: SpoolStoreLimits) {
    this.#root = root
    this.#entries = root.openDB('entries', { encoding: 'string' })
    this.#invalid = root.openDB('invalid', { encoding: 'msgpack' })
    this.#unreadable = root.openDB('unreadable', { encoding: 'msgpack' })
    this.#file = file
    this.#maxBytes = maxBytes
    this.#spareBytes = spareBytes + concurrency * spareBytesPerDelivery
    // Above all that were ever given, whatever the clock says: an id belongs to one delivery for good.
    this.#lastId = Math.max(Date.now() * 1_000, this.lastDueAt * 1_000, ...this.#lastIds())
  }

  /** @throws what the system or LMDB throws, if the files cannot be opened or written. */
  static async open(
    lmdb: typeof import('lmdb'),
    folder: string,
    limits: SpoolStoreLimits,
  ): Promise<SpoolStore> {
    const file = await DataFile.open(folder)
    let root: RootDatabase | undefined
    try {
      root = lmdb.open({
        path: folder,
        maxDbs: 3,
        // By default a write counts as done before it has reached the disk.
        overlappingSync: false,
        // With batches of its own lmdb makes a promise that nobody sees, whose rejection ends the process.
        eventTurnBatching: false,
        // The name of a folder may look like that of a file.
        noSubdir: false,
      })
      return new SpoolStore(root, file, limits)
    } catch (error) {
      await root?.close()
      await file.close()
      throw error
    }
  }

  /** How many entries there are. */
  get count(): number {
    return countOf(this.#entries)
  }

  /** Resolves when the entry is on the disk. */
  async add(text: string): Promise<void> {
    const value = storedValue({ keptAt: Date.now(), attempts: 0 }, text)
    await this.#addBytes(Buffer.byteLength(value), () => this.#entries.put([0, this.#nextId()], value))
  }

  /** The first entry that was never tried, without those of `taken`. */
  firstNew(taken: Ids): Entry | undefined {
    return this.#entryAt(this.#firstKey({ start: [0, 0], end: [0, Number.POSITIVE_INFINITY] }, taken))
  }

  /** The entry that is to be repeated first, without those of `taken`. */
  firstToRepeat(taken: Ids): Entry | undefined {
    return this.#entryAt(this.#firstKey(tried, taken))
  }

  /** When {@link firstToRepeat} is to be repeated. */
  nextDueAt(taken: Ids): number | undefined {
    return this.#firstKey(tried, taken)?.[0]
  }

  /** When the last of the entries is to be repeated; 0 if none is. */
  get lastDueAt(): number {
    for (const [dueAt] of this.#entries.getKeys({ reverse: true, limit: 1 })) return dueAt
    return 0
  }

  #firstKey(range: RangeOptions, taken: Ids): EntryKey | undefined {
    for (const key of this.#entries.getKeys(range)) if (!taken.has(key[1])) return key
    return undefined
  }

  #entryAt(key: EntryKey | undefined): Entry | undefined {
    if (key === undefined) return undefined
    const [dueAt, id] = key
    const value = this.#entries.get(key)
    return value === undefined ? undefined : { dueAt, id, ...partsOfValue(value) }
  }

  remove({ dueAt, id }: Entry): Promise<void> {
    return this.#write(() => this.#entries.remove([dueAt, id]))
  }

  /** Puts an entry where it comes again at `dueAt`. */
  postpone(entry: Entry, dueAt: number, history: History): Promise<void> {
    return this.#write(() =>
      this.#entries.batch(() => {
        this.#entries.remove([entry.dueAt, entry.id])
        this.#entries.put([dueAt, entry.id], storedValue(history, entry.text))
      }),
    )
  }

  /** Puts an entry aside, which no parser here can read. */
  setAside(entry: Entry, issues: readonly Issue[]): Promise<void> {
    const body = { receivedAt: entry.history.keptAt, body: entry.text, issues }
    return this.#write(() =>
      this.#entries.batch(() => {
        this.#entries.remove([entry.dueAt, entry.id])
        this.#unreadable.put(entry.id, body)
      }),
    )
  }

  /** Keeps a body; the oldest make room for it. */
  async addInvalid(body: unknown, issues: readonly Issue[]): Promise<void> {
    const bytes = sizeOf(body)
    if (bytes > maxInvalidBytes) throw new SpoolError('The body is larger than 16 MiB.', { reason: 'full' })
    const stored = { receivedAt: Date.now(), body, issues }
    await this.#addBytes(bytes, () => this.#invalid.put(this.#nextId(), stored))
    while (bytesOf(this.#invalid) > maxInvalidBytes) {
      for (const oldest of this.#invalid.getKeys({ limit: 1 })) await this.removeInvalid(oldest)
    }
  }

  /** The oldest of the bodies whose id is larger. */
  invalidAfter(id: number): InvalidBody | undefined {
    const start = id + 1
    const candidates = [this.#invalid, this.#unreadable].flatMap((db) => [
      ...db.getRange({ start, limit: 1 }),
    ])
    const [oldest] = candidates.sort((a, b) => a.key - b.key)
    return oldest && { id: oldest.key, ...oldest.value }
  }

  removeInvalid(id: number): Promise<void> {
    return this.#write(() =>
      this.#root.batch(() => {
        this.#invalid.remove(id)
        this.#unreadable.remove(id)
      }),
    )
  }

  /** Waits for what is being written. Nothing may be called afterwards. */
  async close(): Promise<void> {
    await this.#root.close()
    await this.#file.close()
  }

  /** Writes so many bytes more. */
  async #addBytes(bytes: number, write: () => Promise<unknown>): Promise<void> {
    // Counted before anything is waited for: what comes meanwhile needs room besides these.
    this.#unwrittenBytes += bytes
    try {
      await this.#requireRoom(bytes)
      await this.#write(write)
    } finally {
      this.#unwrittenBytes -= bytes
    }
  }

  /** @throws SpoolError if there is no room for what is not written yet, of which `bytes` come last. */
  async #requireRoom(bytes: number): Promise<void> {
    const unwritten = this.#unwrittenBytes
    if (unwritten > maxUnwrittenBytes) {
      throw new SpoolError(`The disk is too slow: ${unwritten} bytes wait for it.`, { reason: 'disk' })
    }
    const { waitingBytes } = this.#measures
    if (waitingBytes + unwritten > this.#maxBytes) {
      throw new SpoolError(
        `The spool is full: ${waitingBytes} bytes wait, and maxBytes is ${this.#maxBytes}.`,
        { reason: 'full' },
      )
    }
    const needed = this.#spareBytes + fileBytesPerByte * unwritten
    if (await this.#file.growTo(this.#measures.endBytes + needed)) return
    // The disk is full. Pages that became free in the file will do, where none have to be next to each other.
    const { usedBytes, endBytes } = this.#measures
    const isRoomInside = this.#file.size - usedBytes >= 2 * needed
    const isRoomToRemove = this.#file.size - endBytes >= this.#spareBytes / 2
    if (bytes <= maxInlineBytes && isRoomInside && isRoomToRemove) return
    const cause = this.#file.failure
    throw new SpoolError(
      `The disk has no room for the spool (${messageOf(cause)}).`,
      { reason: 'disk' },
      { cause },
    )
  }

  /** @throws SpoolError with what LMDB says as its cause. */
  async #write(write: () => Promise<unknown>): Promise<void> {
    try {
      await write()
      this.#measured = undefined
    } catch (error) {
      const { commitError } = Object(error)
      // Not a failure of the disk, but a value that cannot be stored.
      if (commitError === undefined) throw error
      const cause = await Promise.resolve(commitError).catch((reason) => reason)
      const message = `Writing to the disk failed (${messageOf(cause)}).`
      throw new SpoolError(message, { reason: 'disk' }, { cause })
    }
  }

  get #measures(): Measures {
    this.#measured ??= this.#measure()
    return this.#measured
  }

  #measure(): Measures {
    return measure([this.#entries, this.#unreadable], [this.#invalid])
  }

  #nextId(): number {
    this.#lastId += 1
    return this.#lastId
  }

  /** The last ids of what is not in the order of repetition, where {@link lastDueAt} is later than any of them. */
  #lastIds(): number[] {
    const untried = { start: [0, Number.POSITIVE_INFINITY] as EntryKey, end: [0, 0] as EntryKey }
    const last = { reverse: true, limit: 1 }
    return [
      ...this.#entries.getKeys({ ...untried, ...last }).map(([, id]) => id),
      ...this.#invalid.getKeys(last),
      ...this.#unreadable.getKeys(last),
    ]
  }
}

function storedValue(history: History, text: string): string {
  return `${JSON.stringify(history)}\n${text}`
}

/** JSON has no line break of its own, so the first one ends the history. */
function partsOfValue(value: string): Pick<Entry, 'history' | 'text'> {
  const end = value.indexOf('\n')
  return { history: JSON.parse(value.slice(0, end)), text: value.slice(end + 1) }
}

/** About how many bytes a body takes. */
function sizeOf(body: unknown): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return body.byteLength
  return Buffer.byteLength(JSON.stringify(body) ?? '')
}
