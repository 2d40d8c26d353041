/** The segments of a spool. One is open and gets the new entries; the others are read, and removed when they are done. */
import { failWrite, type SpoolFolder } from './folder.js'
import { contentOf, diskBytesOf, type FileFields, nameOf, wholeBytesOf } from './format.js'
import { type Entry, Segment } from './segment.js'

/** A segment of this size gets no more entries. 256 KiB to 8 MiB make no difference in speed. */
const segmentBytes = 2 ** 20

export class SegmentLog {
  readonly #folder: SpoolFolder
  readonly #segments = new Set<Segment>()
  #open: Segment | undefined
  #bytes = 0
  #lastId = 0

  constructor(folder: SpoolFolder) {
    this.#folder = folder
  }

  /** The disk space of all segments, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of waiting entries; until all segments are read, it includes finished entries of an earlier process. */
  get count(): number {
    let count = 0
    for (const segment of this.#segments) count += segment.count
    return count
  }

  /** When the oldest waiting entry was received. Exact for what is read; before, as old as its segment. */
  get oldestReceivedAt(): number | undefined {
    let oldest = Number.POSITIVE_INFINITY
    for (const segment of this.#segments) oldest = Math.min(oldest, segment.oldestAt)
    return oldest === Number.POSITIVE_INFINITY ? undefined : oldest
  }

  /** A new id: about the time in microseconds, and always higher than earlier ones. */
  newId(): number {
    this.noteId(Date.now() * 1_000)
    return this.#lastId
  }

  /** New ids are higher than this one. */
  noteId(id: number): void {
    this.#lastId = Math.max(this.#lastId + 1, id)
  }

  /** Adds the segment of a file that an earlier process closed. */
  add(name: string, fields: FileFields): Segment {
    const segment = new Segment(this.#folder, fields, name, (each, bytes) => this.#count(each, bytes))
    this.#segments.add(segment)
    this.#bytes += diskBytesOf(fields.size)
    this.noteId(fields.lastId)
    return segment
  }

  #count(segment: Segment, bytes: number): void {
    this.#bytes += diskBytesOf(segment.size) - diskBytesOf(segment.size - bytes)
    if (segment.size === 0 && !segment.isOpen) this.#segments.delete(segment)
  }

  /**
   * Closes the segment that a killed process left open. Cuts off the end that it was writing: this was never acknowledged.
   *
   * @returns the segment, if something is in it
   */
  async recover(name: string, fields: FileFields): Promise<Segment[]> {
    const bytes = await this.#folder.read(name)
    const size = wholeBytesOf(bytes)
    const { entries, damagedAt } = contentOf(bytes.subarray(0, size), fields.id)
    if (entries.length + damagedAt.length === 0) {
      await this.#folder.remove(name)
      return []
    }
    if (size < bytes.length) await this.#folder.cut(name, size)
    const ids = entries.map(({ id }) => id)
    const times = entries.map(({ receivedAt }) => receivedAt)
    const closed: FileFields = {
      kind: 'log',
      id: fields.id,
      lastId: Math.max(fields.lastId, ...ids),
      count: entries.length,
      size,
      oldestAt: Math.min(...times, fields.oldestAt),
    }
    const closedName = nameOf(closed)
    await this.#folder.rename(name, closedName)
    return [this.add(closedName, closed)]
  }

  /**
   * Writes entries to the end of the open segment.
   *
   * @param isKnown - whether memory keeps an entry. Called when all are on the disk
   * @throws `SpoolError`: then none is kept, and another segment gets the next ones
   */
  async append(entries: readonly Entry[], isKnown: (entry: Entry, index: number) => boolean): Promise<void> {
    if (this.#open && this.#open.size >= segmentBytes) await this.#open.seal()
    if (!this.#open?.isOpen) this.#open = await this.#create()
    const segment = this.#open
    try {
      await segment.append(entries, isKnown)
    } catch (error) {
      // After a failed sync the system may show what the disk does not have, and not report it again.
      await segment.seal().catch(() => {})
      throw error
    }
  }

  async #create(): Promise<Segment> {
    const id = this.newId()
    const fields: FileFields = { kind: 'open', id, lastId: id, count: 0, size: 0, oldestAt: Date.now() }
    const name = nameOf(fields)
    const handle = await this.#folder.open(name, 'wx+').catch(failWrite)
    const segment = new Segment(this.#folder, fields, name, (each, bytes) => this.#count(each, bytes), handle)
    this.#segments.add(segment)
    return segment
  }

  /** Closes the open segment, and all files. */
  async close(): Promise<void> {
    if (this.#open?.isOpen) await this.#open.seal()
    for (const segment of this.#segments) await segment.close()
  }
}
