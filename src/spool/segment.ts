/** A file of deliveries. What becomes of an entry is written over its state, and the file is removed when all are done. */
import type { FileHandle } from 'node:fs/promises'
import { failDisk, ifGone, type SpoolFolder } from './folder.js'
import { contentIn, contentOf, type FileFields, lineOf, nameOf, type StoredEntry, stateOf } from './format.js'
import { GroupedWrites } from './grouped-writes.js'

/** A delivery that waits in a segment. Its text is empty while only the disk has it. */
export interface Entry extends StoredEntry {
  readonly segment: Segment
  /** Where its line is in the file, in bytes. */
  readonly offset: number
  readonly length: number
  isDone?: true
}

export class Segment {
  readonly id: number
  name: string
  /** The highest id in it. */
  lastId: number
  /** The bytes that are synced; what a failed write left behind them does not count. */
  size: number
  /** How many entries wait that memory does not know. Until they are read, finished ones count, too. */
  unread: number
  isOpen: boolean
  /** When a file that could not be read is read again. */
  dueAt = 0
  readonly #folder: SpoolFolder
  /** Called when the file is removed. */
  readonly #onGone: (segment: Segment) => void
  /** The waiting entries that memory knows, by offset. */
  readonly #entries = new Map<number, Entry>()
  /** Memory knows every entry before this place. */
  #readTo = 0
  #oldestUnreadAt: number
  #isDamaged = false
  #isNameSynced = false
  #file: Promise<FileHandle> | undefined
  #users = 0
  /** Writes the state of an entry, together with others of the same time. */
  readonly states = new GroupedWrites<Entry>((entries) => this.#settle(entries))

  /** The first append to an open segment makes its file. */
  constructor(folder: SpoolFolder, fields: FileFields, onGone: (gone: Segment) => void) {
    this.id = fields.id
    this.name = nameOf(fields)
    this.lastId = fields.lastId
    this.size = fields.size
    this.unread = fields.count
    this.isOpen = fields.kind === 'open'
    this.#oldestUnreadAt = fields.count > 0 ? fields.oldestAt : Number.POSITIVE_INFINITY
    this.#folder = folder
    this.#onGone = onGone
  }

  /** Whether it has entries that memory does not know. */
  get isUnread(): boolean {
    return this.#readTo < this.size
  }

  /** The number of waiting entries. */
  get count(): number {
    return this.#entries.size + this.unread
  }

  /** When the oldest waiting entry was received; `Infinity` without one. Exact for what is read. */
  get oldestAt(): number {
    return Math.min(this.#oldestUnreadAt, ...[...this.#entries.values()].map(({ receivedAt }) => receivedAt))
  }

  /** Whether nothing is added any more, and half of it is done: what still waits should move. */
  get isMostlyDone(): boolean {
    const waiting = [...this.#entries.values()].reduce((sum, { length }) => sum + length, 0)
    return !this.isOpen && waiting * 2 <= this.size
  }

  /**
   * Adds entries with one write and one sync, to an empty file if nothing in it waits. If that fails, cuts the file back to
   * what was synced.
   *
   * @throws `SpoolError`
   */
  async append(entries: readonly StoredEntry[]): Promise<void> {
    const bytes = Buffer.from(entries.map((entry) => lineOf(this.id, entry, entry)).join(''))
    await this.#withFile(async (file) => {
      try {
        if (this.count === 0 && this.size > 0 && !this.#isDamaged) {
          await file.truncate(0)
          this.size = this.#readTo = 0
        }
        await writeAll(file, bytes, this.size)
        await file.datasync()
        if (!this.#isNameSynced) await this.#folder.sync()
        this.#isNameSynced = true
      } catch (cause) {
        await file.truncate(this.size).catch(() => {})
        throw cause
      }
    }).catch(failDisk)
    this.size += bytes.length
    this.lastId = Math.max(this.lastId, ...entries.map(({ id }) => id))
    this.#oldestUnreadAt = Math.min(this.#oldestUnreadAt, ...entries.map(({ receivedAt }) => receivedAt))
    this.unread += entries.length
  }

  /** Ends the appends: gives the file a name with its count. A failure does no harm: the next start reads the content. */
  async seal(): Promise<void> {
    const { count, oldestAt } = this
    if (count > 0) {
      const renamed = this.#folder.rename(this.name, nameOf({ ...this, kind: 'closed', count, oldestAt }))
      this.name = await renamed.catch(() => this.name)
    }
    this.isOpen = false
    await this.#dropIfOnly(0)
    if (this.#users === 0) await this.close()
  }

  /** Reads the entries that memory does not know yet. @throws `SpoolError` */
  async readRest(): Promise<Entry[]> {
    // What is added meanwhile is read next.
    const [from, to, unread] = [this.#readTo, this.size, this.unread]
    const { entries, damagedAt } = contentOf(await this.#read(from, to - from), this.id, to - from)
    const found = entries.map((one) => Object.assign(one, { segment: this, offset: from + one.offset }))
    for (const entry of found) this.#entries.set(entry.offset, entry)
    this.unread -= unread
    if (this.unread === 0) this.#oldestUnreadAt = Number.POSITIVE_INFINITY
    this.#readTo = to
    for (const offset of damagedAt) this.#reportDamage(from + offset)
    await this.#dropIfOnly(0)
    return found
  }

  /** Reads the text of an entry again. Resolves with false if it is damaged, which is reported. @throws `SpoolError` */
  async readText(entry: Entry): Promise<boolean> {
    const content = contentIn(await this.#read(entry.offset, entry.length), this.id)
    if (content?.id === entry.id) {
      entry.text = content.text
      return true
    }
    this.#reportDamage(entry.offset)
    this.#entries.delete(entry.offset)
    await this.#dropIfOnly(0)
    return false
  }

  #reportDamage(offset: number): void {
    this.#isDamaged = true
    this.#folder.reports.damaged(this.name, offset)
  }

  /** So many bytes from a position, or up to the end. Empty if another program removed the file. */
  #read(from: number, length: number): Promise<Buffer> {
    return this.#withFile(async (file) => {
      const bytes = Buffer.allocUnsafe(length)
      return bytes.subarray(0, await readAll(file, bytes, from))
    }).catch(ifGone(Buffer.alloc(0)))
  }

  async #settle(entries: readonly Entry[]): Promise<void> {
    await this.#withFile((file) => writeStates(file, entries)).catch(ifGone(undefined))
    const done = entries.filter(({ isDone }) => isDone)
    await this.#dropIfOnly(done.length)
    for (const { offset } of done) this.#entries.delete(offset)
  }

  /** Removes a closed file in which nothing waits but so many that are done. A damaged file is kept for inspection. */
  async #dropIfOnly(done: number): Promise<void> {
    if (this.count > done || this.isOpen) return
    await (this.#isDamaged ? this.#folder.keepDamaged(this.name) : this.#folder.remove(this.name))
    this.#onGone(this)
  }

  /** The file of the open segment stays open, another is open while it is used. */
  async #withFile<T>(use: (file: FileHandle) => Promise<T>): Promise<T> {
    this.#users += 1
    this.#file ??= this.#folder.open(this.name, this.isOpen ? 'wx+' : 'r+')
    try {
      return await use(await this.#file)
    } finally {
      this.#users -= 1
      // 10 ms later, because the next group of states comes soon: draining took half as long again.
      if (!this.isOpen) setTimeout(() => this.#users === 0 && void this.close(), 10)
    }
  }

  async close(): Promise<void> {
    const closing = this.#file
    this.#file = undefined
    await closing?.then((file) => file.close()).catch(() => {})
  }
}

/** Not synced: a power failure may restore the earlier states. Needs no space. */
async function writeStates(file: FileHandle, entries: readonly Entry[]): Promise<void> {
  const write = (entry: Entry) => writeAll(file, Buffer.from(stateOf(entry, entry.isDone)), entry.offset)
  const writes = entries.map(write)
  // Also after a failure: the file must not be closed under a write.
  await Promise.allSettled(writes)
  await Promise.all(writes)
}

/** Fills the bytes, or as many as the file has: some file systems give a part. Resolves with their number. */
async function readAll(file: FileHandle, bytes: Buffer, position: number, at = 0): Promise<number> {
  const { bytesRead } = await file.read(bytes, at, bytes.length - at, position + at)
  return bytesRead === 0 ? at : readAll(file, bytes, position, at + bytesRead)
}

/** A write on a disk that gets full may stop in the middle. */
async function writeAll(file: FileHandle, content: Buffer, position: number): Promise<void> {
  for (let at = 0; at < content.length; ) {
    at += (await file.write(content, at, content.length - at, position + at)).bytesWritten
  }
}
