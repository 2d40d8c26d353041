/**
 * What is on the disk: the deliveries that wait, in the order in which they are due, and the bodies that could not be
 * read. Memory holds none of them.
 */
import type { Database, RangeOptions, RootDatabase } from 'lmdb'
import { type Issue, SpoolError } from '../errors.js'
import { messageOf } from '../shared/excerpt.js'
import { DataFile } from './data-file.js'
import { DiskRoom, type SpoolLimits } from './disk-room.js'
import { bytesOf, countOf, measure } from './measures.js'

/** A delivery that waits. */
export interface Entry {
  /** Grows with every delivery, over all processes: the order in which deliveries were kept. */
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

/** A body that a spool keeps although it is no delivery, or none that this process can read. */
export interface InvalidBody {
  /** What `discardInvalid` takes. */
  readonly id: number
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** What was received: text, bytes or a parsed value; of a delivery that `keep` had kept, its JSON text. */
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

export class SpoolStore {
  readonly #root: RootDatabase
  /** Values are a line with the history, then the delivery. */
  readonly #entries: Database<string, EntryKey>
  /** Bodies that the receiver could not read. */
  readonly #invalid: Database<StoredBody, number>
  /** Deliveries that the receiver could read and this process cannot: they are never dropped for room. */
  readonly #unreadable: Database<StoredBody, number>
  readonly #file: DataFile
  readonly #room: DiskRoom
  #lastId: number

  private constructor(root: RootDatabase, file: DataFile, limits: SpoolLimits) {
    this.#root = root
    this.#entries = root.openDB('entries', { encoding: 'string' })
    this.#invalid = root.openDB('invalid', { encoding: 'msgpack' })
    this.#unreadable = root.openDB('unreadable', { encoding: 'msgpack' })
    this.#file = file
    this.#room = new DiskRoom(file, () => measure([this.#entries, this.#unreadable], [this.#invalid]), limits)
    // Above all ids that were ever given, whatever the clock says: an id belongs to one delivery for good.
    this.#lastId = Math.max(Date.now() * 1_000, this.lastDueAt * 1_000, ...this.#lastIds())
  }

  /** @throws what the system or LMDB throws, if the files cannot be opened or written */
  static async open(lmdb: typeof import('lmdb'), folder: string, limits: SpoolLimits): Promise<SpoolStore> {
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
    await this.#room.take(Buffer.byteLength(value), () =>
      this.#write(() => this.#entries.put([0, this.#nextId()], value)),
    )
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

  /** Puts an entry off until `dueAt`. */
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
    await this.#room.take(bytes, () => this.#write(() => this.#invalid.put(this.#nextId(), stored)))
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

  /** Waits for what is being written, and closes the files. No method may be called afterwards. */
  async close(): Promise<void> {
    await this.#root.close()
    await this.#file.close()
  }

  /** @throws `SpoolError` with what LMDB says as its cause */
  async #write(write: () => Promise<unknown>): Promise<void> {
    try {
      await write()
      this.#room.changed()
    } catch (error) {
      const { commitError } = Object(error)
      // Without `commitError` not the disk failed: the value cannot be stored.
      if (commitError === undefined) throw error
      const cause = await Promise.resolve(commitError).catch((reason) => reason)
      const message = `Writing to the disk failed (${messageOf(cause)}).`
      throw new SpoolError(message, { reason: 'disk' }, { cause })
    }
  }

  #nextId(): number {
    this.#lastId += 1
    return this.#lastId
  }

  /** The last ids of all but the entries that were tried: {@link lastDueAt} is later than the ids of those. */
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
