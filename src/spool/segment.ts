/** A file of deliveries. What becomes of an entry is written over its state, and the file is removed when all are done. */
import type { FileHandle } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { failDisk, ifGone, type SpoolFolder } from './folder.js'
import type { FileFields, Place, StoredEntry } from './format.js'
import { fieldsIn, lineOf, nameOf, notAttempted, placesIn, stateOf } from './format.js'

/** A delivery that waits in a segment. Its text is empty while only the disk has it. */
export interface Entry extends Place, StoredEntry {
  readonly segment: Segment
  isDone?: true
}

/** A segment of this size gets no more entries. 256 KiB to 8 MiB make no difference in speed. */
const segmentBytes = 2 ** 20

const nothingRead: { readonly from: number; readonly bytes: Buffer } = { from: 0, bytes: Buffer.alloc(0) }

export class Segment {
  readonly id: number
  name: string
  /** The highest id in the segment. */
  lastId: number
  /** The bytes that are synced; what a failed write left behind them does not count. */
  size: number
  isOpen: boolean
  /** The places of entries that were never attempted, four numbers each: as objects, those of a full quota take 500 MB. */
  #newPlaces: number[] = []
  #nextPlace = 0
  /** The other waiting entries: those that are next, are in flight, or have failed. */
  readonly #entries = new Set<Entry>()
  /** The file from the last entry of `takeNew` on, as it was read: the next entries are in it. */
  #ahead = nothingRead
  #isDamaged = false
  #isNameSynced = false
  #file: Promise<FileHandle> | undefined
  #uses = 0
  /** The entries whose states are written next, and the end of that write. */
  readonly #changed: Entry[] = []
  #written: Promise<void> = Promise.resolve()

  /**
   * The first append to an open segment makes its file.
   *
   * @param onGone - called when the file is removed
   */
  constructor(
    private readonly folder: SpoolFolder,
    fields: FileFields,
    private readonly onGone: (gone: Segment) => void,
  ) {
    this.id = fields.id
    this.name = nameOf(fields)
    this.lastId = fields.lastId
    this.size = fields.size
    this.isOpen = fields.kind === 'open'
  }

  /** Whether the segment has entries that {@link Segment.takeNew} has not returned. */
  get hasNew(): boolean {
    return this.#nextPlace < this.#newPlaces.length
  }

  get count(): number {
    return this.#entries.size + (this.#newPlaces.length - this.#nextPlace) / 4
  }

  /** When the oldest waiting entry was received (`Infinity` without one), and the bytes of all. */
  get waiting(): { readonly oldestAt: number; readonly bytes: number } {
    let [oldestAt, bytes] = [Number.POSITIVE_INFINITY, 0]
    const add = (receivedAt = oldestAt, length = 0) => {
      oldestAt = Math.min(oldestAt, receivedAt)
      bytes += length
    }
    const places = this.#newPlaces
    for (let at = this.#nextPlace; at < places.length; at += 4) add(places[at + 1], places[at + 3])
    for (const { receivedAt, length } of this.#entries) add(receivedAt, length)
    return { oldestAt, bytes }
  }

  /** Whether nothing is added any more, and half of the segment is done: what still waits should move. */
  get isMostlyDone(): boolean {
    return !this.isOpen && this.waiting.bytes * 2 <= this.size
  }

  /** Reads what an earlier process left. Resolves with the entries that have failed. @throws `SpoolError` */
  async load(): Promise<Entry[]> {
    const bytes = await this.folder.read(this.name)
    const size = this.isOpen ? undefined : this.size
    const { places, damagedAt } = placesIn(bytes.subarray(0, size), this.id, size)
    this.size = size ?? bytes.length
    this.isOpen = false
    for (const offset of damagedAt) this.#reportDamage(offset)
    const failed = this.#addPlaces(places)
    await this.#dropIfEmpty()
    return failed
  }

  /** Adds places of lines that begin at `start`. @returns the entries that have failed before */
  #addPlaces(places: readonly Place[], start = 0): Entry[] {
    const failed: Entry[] = []
    for (const place of places) {
      const { id, receivedAt, length, attempts } = place
      const offset = start + place.offset
      this.lastId = Math.max(this.lastId, id)
      if (attempts > 0) failed.push({ ...place, offset, segment: this, text: '' })
      else this.#newPlaces.push(id, receivedAt, offset, length)
    }
    for (const entry of failed) this.#entries.add(entry)
    return failed
  }

  /** Resolves with whether the segment may get more entries. Empties the file if nothing in it waits. */
  async makeRoom(): Promise<boolean> {
    if (!this.isOpen || this.size >= segmentBytes) return false
    if (this.count > 0 || this.size === 0) return true
    const failure: unknown = await this.#withFile((file) => file.truncate(0)).catch((error) => error)
    if (failure !== undefined) return false
    this.size = 0
    this.#ahead = nothingRead
    return true
  }

  /** Adds entries with one write and one sync, all or none. Resolves with those that have failed before. @throws `SpoolError` */
  async append(entries: readonly StoredEntry[]): Promise<Entry[]> {
    const bytes = Buffer.from(entries.map((entry) => lineOf(this.id, entry, entry)).join(''))
    await this.#withFile(async (file) => {
      try {
        await writeAll(file, bytes, this.size)
        await file.datasync()
        if (!this.#isNameSynced) await this.folder.sync()
        this.#isNameSynced = true
      } catch (cause) {
        await file.truncate(this.size).catch(() => {})
        throw cause
      }
    }).catch(failDisk)
    const start = this.size
    this.size += bytes.length
    return this.#addPlaces(placesIn(bytes, this.id).places, start)
  }

  /** Ends the appends: gives the file a name with its size. A failure does no harm: the next start reads the whole file. */
  async seal(): Promise<void> {
    if (!this.isOpen) return
    const { count, waiting } = this
    if (count > 0) {
      const name = nameOf({ ...this, kind: 'closed', count, oldestAt: waiting.oldestAt })
      this.name = await this.folder.rename(this.name, name).catch(() => this.name)
    }
    this.isOpen = false
    await this.#dropIfEmpty()
    if (this.#uses === 0) await this.close()
  }

  /** The next entry that was never attempted, without its text. */
  takeNew(): Entry {
    const from = this.#nextPlace
    this.#nextPlace += 4
    const [id = 0, receivedAt = 0, offset = 0, length = 0] = this.#newPlaces.slice(from, this.#nextPlace)
    const entry = { segment: this, id, receivedAt, offset, length, text: '', ...notAttempted }
    this.#entries.add(entry)
    if (!this.hasNew) this.#newPlaces.length = this.#nextPlace = 0
    return entry
  }

  /** Reads the text of an entry. Resolves with false if it is damaged, which is reported. @throws `SpoolError` */
  async readText(entry: Entry): Promise<boolean> {
    const { attempts, offset, length } = entry
    const { from, bytes } = this.#ahead
    const isRead = offset >= from && offset + length <= from + bytes.length
    const read = isRead
      ? bytes.subarray(offset - from)
      : await this.#read(offset, attempts > 0 ? length : this.size - offset)
    if (attempts === 0) this.#ahead = this.hasNew ? { from: offset, bytes: read } : nothingRead
    const line = read.subarray(0, length)
    const fields = fieldsIn(line, this.id)
    if (fields?.id === entry.id) {
      entry.text = fields.text
      entry.traceparent = fields.traceparent
      return true
    }
    this.#reportDamage(offset)
    // Another program cut or removed the file: one report for all that is behind.
    if (line.length < length) this.#newPlaces.length = this.#nextPlace = 0
    this.#entries.delete(entry)
    await this.#dropIfEmpty()
    return false
  }

  #reportDamage(offset: number): void {
    this.#isDamaged = true
    this.folder.reports.damaged(this.name, offset)
  }

  /** Up to `length` bytes from a position on. Empty if another program removed the file. */
  #read(from: number, length: number): Promise<Buffer> {
    return this.#withFile(async (file) => {
      const bytes = Buffer.allocUnsafe(length)
      return bytes.subarray(0, await readAll(file, bytes, from))
    }).catch(ifGone(Buffer.alloc(0)))
  }

  /** Writes what became of an entry. Not synced: a power failure may restore the earlier state. @throws `SpoolError` */
  writeState(entry: Entry): Promise<void> {
    // Entries of one turn wait for each other: one by one, draining takes half as long again.
    if (this.#changed.push(entry) === 1) this.#written = this.#writeStates()
    return this.#written
  }

  async #writeStates(): Promise<void> {
    await setImmediate()
    const entries = this.#changed.splice(0)
    await this.#withFile(async (file) => {
      const write = (each: Entry) => writeAll(file, Buffer.from(stateOf(each, each.isDone)), each.offset)
      await Promise.all(entries.map(write))
    }).catch(ifGone(undefined))
    for (const entry of entries) if (entry.isDone) this.#entries.delete(entry)
    await this.#dropIfEmpty()
  }

  /** Removes a closed file in which nothing waits. A damaged one is kept for inspection. */
  async #dropIfEmpty(): Promise<void> {
    if (this.count > 0 || this.isOpen) return
    this.onGone(this)
    const gone = this.#isDamaged ? this.folder.keepDamaged(this.name) : this.folder.remove(this.name)
    await gone.catch((error) => {
      this.folder.reports.writeFailed(error, 'Removing a file failed: the next start removes it')
    })
  }

  /** The file of the open segment stays open, another is open while it is used. */
  async #withFile<T>(use: (file: FileHandle) => Promise<T>): Promise<T> {
    this.#uses += 1
    this.#file ??= this.folder.open(this.name, this.isOpen ? 'wx+' : 'r+')
    try {
      return await use(await this.#file)
    } finally {
      this.#uses -= 1
      // 10 ms later, because the next group of states comes soon. Otherwise draining takes half as long again.
      if (!this.isOpen) setTimeout(() => this.#uses === 0 && void this.close(), 10)
    }
  }

  async close(): Promise<void> {
    const closing = this.#file
    this.#file = undefined
    await closing?.then((file) => file.close()).catch(() => {})
  }
}

/** Fills the bytes, or as many as the file has: some file systems give a part. Resolves with their number. */
async function readAll(file: FileHandle, bytes: Buffer, position: number, at = 0): Promise<number> {
  const { bytesRead } = await file.read(bytes, at, bytes.length - at, position + at)
  return bytesRead === 0 ? at : readAll(file, bytes, position, at + bytesRead)
}

/** A write on a disk that gets full may stop in the middle. */
async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten
  }
}
