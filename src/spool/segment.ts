/** A file of deliveries. What becomes of an entry is written over its state, and the file is removed when all are done. */
import type { FileHandle } from 'node:fs/promises'
import { emptyIfGone, failWrite, type SpoolFolder, unlessGone } from './folder.js'
import { contentIn, contentOf, type FileFields, lineOf, nameOf, type StoredEntry, stateOf } from './format.js'
import { GroupedWrites } from './grouped-writes.js'

/** A delivery that waits in a segment. Its text is empty while only the disk has it. */
export interface Entry extends StoredEntry {
  readonly segment: Segment
  /** Where its line is in the file, in bytes. */
  readonly offset: number
  readonly length: number
  isDone: boolean
}

/** Entries whose states are this close share one write, in bytes. */
const neighbourBytes = 32 * 2 ** 10

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
  #isNameSynced: boolean
  #isAppending = false
  /** A change of the file's name or length, for which others wait. */
  #changed: Promise<unknown> = Promise.resolve()
  #file: Promise<FileHandle> | undefined
  #users = 0
  readonly #settlements = new GroupedWrites<Entry>((entries) => this.#settle(entries))

  /** @param file - of a new segment */
  constructor(folder: SpoolFolder, fields: FileFields, onGone: (gone: Segment) => void, file?: FileHandle) {
    this.id = fields.id
    this.name = nameOf(fields)
    this.lastId = fields.lastId
    this.size = fields.size
    this.unread = fields.count
    this.isOpen = fields.kind === 'open'
    this.#oldestUnreadAt = fields.oldestAt
    this.#folder = folder
    this.#onGone = onGone
    this.#isNameSynced = file === undefined
    this.#file = file && Promise.resolve(file)
  }

  /** The number of waiting entries. */
  get count(): number {
    return this.#entries.size + this.unread
  }

  /** When the oldest waiting entry was received; `Infinity` without one. Exact for what is read. */
  get oldestAt(): number {
    let oldest = this.unread > 0 ? this.#oldestUnreadAt : Number.POSITIVE_INFINITY
    for (const { receivedAt } of this.#entries.values()) oldest = Math.min(oldest, receivedAt)
    return oldest
  }

  /** Whether nothing is added any more, and half of it is done: what still waits should move. */
  get isMostlyDone(): boolean {
    const waiting = [...this.#entries.values()].reduce((sum, { length }) => sum + length, 0)
    return !this.isOpen && this.unread === 0 && waiting * 2 <= this.size
  }

  /** Adds entries with one write and one sync. If that fails, cuts the file back to what was synced. @throws `SpoolError` */
  async append(entries: readonly StoredEntry[], areKnown: boolean): Promise<Entry[]> {
    this.#isAppending = true
    try {
      await this.#changed
      const bytes = Buffer.from(entries.map((entry) => lineOf(this.id, entry, entry)).join(''))
      await this.#withFile(async (file) => {
        try {
          await writeAll(file, bytes, this.size)
          await file.datasync()
          if (!this.#isNameSynced) await this.#folder.sync()
        } catch (cause) {
          await file.truncate(this.size).catch(() => {})
          failWrite(cause)
        }
      })
      this.#isNameSynced = true
      this.size += bytes.length
      this.lastId = Math.max(this.lastId, ...entries.map(({ id }) => id))
      if (areKnown) return await this.#know(bytes, this.size, 0)
      if (this.unread === 0) this.#oldestUnreadAt = Math.min(...entries.map(({ receivedAt }) => receivedAt))
      this.unread += entries.length
      return []
    } finally {
      this.#isAppending = false
    }
  }

  /** Ends the appends: gives the file a name with its count. A failure does no harm: the next start reads the content. */
  async seal(): Promise<void> {
    await this.#changed
    this.isOpen = false
    if (this.count === 0) return this.#drop()
    const name = nameOf({ ...this, kind: 'log', count: this.count, oldestAt: this.oldestAt })
    const renamed = this.#folder.rename(this.name, name).then(() => {
      this.name = name
    })
    this.#changed = renamed.catch(() => {})
    await this.#changed
    if (this.#users === 0) await this.close()
  }

  /** Reads the entries that memory does not know yet. @throws `SpoolError` */
  async readRest(): Promise<Entry[]> {
    const { size, unread } = this
    return this.#know(await this.#read(this.#readTo, size - this.#readTo), size, unread)
  }

  /** Remembers the entries up to a place in the file, of which so many were unread. */
  async #know(bytes: Buffer, to: number, unread: number): Promise<Entry[]> {
    const from = this.#readTo
    const { entries, damagedAt } = contentOf(bytes, this.id, to - from)
    const found = entries.map((one) => ({ ...one, segment: this, offset: from + one.offset, isDone: false }))
    for (const entry of found) this.#entries.set(entry.offset, entry)
    this.unread -= unread
    this.#readTo = to
    for (const offset of damagedAt) this.#reportDamage(from + offset)
    await this.#dropIfDone()
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
    await this.#dropIfDone()
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
      let end = 0
      for (let read = 1; end < length && read > 0; end += read) {
        read = (await file.read(bytes, end, length - end, from + end)).bytesRead
      }
      return bytes.subarray(0, end)
    }).catch(emptyIfGone)
  }

  /** Writes the state of an entry, together with others of the same time. @throws `SpoolError` */
  settle(entry: Entry): Promise<void> {
    return this.#settlements.add(entry)
  }

  async #settle(entries: readonly Entry[]): Promise<void> {
    const done = entries.filter(({ isDone }) => isDone)
    const isLast = done.length === this.count
    if (isLast && !(this.isOpen && this.#isAppending)) return this.#drop()
    const sorted = [...entries].sort((a, b) => a.offset - b.offset)
    await this.#withFile((file) => writeStates(file, sorted)).catch(unlessGone)
    for (const { offset } of done) this.#entries.delete(offset)
    await this.#dropIfDone()
  }

  async #dropIfDone(): Promise<void> {
    if (this.count === 0 && !this.isOpen) await this.#drop()
  }

  /** Empties an open file, and removes a closed one. A damaged file is kept for inspection. */
  async #drop(): Promise<void> {
    if (this.isOpen && !this.#isDamaged) {
      const emptied = this.#withFile((file) => file.truncate(0))
      this.#changed = emptied.catch(() => {})
      await emptied.catch(failWrite)
      this.#readTo = 0
    } else {
      this.isOpen = false
      await this.#changed
      await this.close()
      await (this.#isDamaged ? this.#folder.keepDamaged(this.name) : this.#folder.remove(this.name))
    }
    this.#entries.clear()
    this.size = 0
    if (!this.isOpen) this.#onGone(this)
  }

  /** The file of the open segment stays open, another is open while it is used. */
  async #withFile<T>(use: (file: FileHandle) => Promise<T>): Promise<T> {
    this.#users += 1
    this.#file ??= this.#folder.open(this.name, 'r+')
    try {
      return await use(await this.#file)
    } finally {
      this.#users -= 1
      // A turn later, because the next group of states often waits already: draining took half as long again.
      if (this.#users === 0 && !this.isOpen) setImmediate(() => this.#users === 0 && void this.close())
    }
  }

  async close(): Promise<void> {
    const closing = this.#file
    this.#file = undefined
    await closing?.then((file) => file.close()).catch(() => {})
  }
}

/** Of neighbours with one read and one write. Not synced: a power failure may restore the earlier states. Needs no space. */
async function writeStates(file: FileHandle, entries: readonly Entry[]): Promise<void> {
  for (let from = 0, to = 0; from < entries.length; from = to) {
    const start = entries[from]?.offset ?? 0
    while (to < entries.length && (entries[to]?.offset ?? 0) - start <= neighbourBytes) to += 1
    const states = entries
      .slice(from, to)
      .map((entry) => [entry.offset - start, stateOf(entry, entry.isDone)] as const)
    const [lastAt, lastState] = states.at(-1) ?? [0, '']
    const bytes = Buffer.alloc(lastAt + lastState.length)
    if (states.length > 1) await file.read(bytes, 0, bytes.length, start)
    for (const [at, state] of states) bytes.write(state, at, 'latin1')
    await writeAll(file, bytes, start)
  }
}

/** A write on a disk that gets full may stop in the middle. */
async function writeAll(file: FileHandle, content: Buffer, position: number): Promise<void> {
  for (let at = 0; at < content.length; ) {
    at += (await file.write(content, at, content.length - at, position + at)).bytesWritten
  }
}
