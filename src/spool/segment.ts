/** A file of deliveries. What becomes of an entry is written over its state, and the file is removed when all are done. */
import type { FileHandle } from 'node:fs/promises'
import { emptyIfGone, failWrite, type SpoolFolder, unlessGone } from './folder.js'
import {
  contentIn,
  contentOf,
  type EntryContent,
  type EntryState,
  type FileFields,
  lineOf,
  nameOf,
  stateOf,
  untried,
} from './format.js'
import { GroupedWrites } from './grouped-writes.js'

/** A delivery that waits in a segment, or is to be written into one. */
export interface Entry extends EntryContent, EntryState {
  /** Empty while only the disk has it. */
  text: string
  isDone: boolean
  /** It comes from another place, and who moves it needs it in memory. */
  isMoved: boolean
  /** By how much `crashes` rises before the next attempt; 0 for one that is not suspected of ending the process. */
  suspicion: number
  segment: Segment | undefined
  offset: number
  length: number
}

export function newEntry(content: EntryContent, state = untried, isMoved = false): Entry {
  const { id, receivedAt, traceparent, text } = content
  const { attempts, dueAt, reportedAt, crashes } = state
  const place = { segment: undefined, offset: 0, length: 0 }
  const flags = { isDone: false, isMoved, suspicion: 0 }
  return { id, receivedAt, traceparent, text, attempts, dueAt, reportedAt, crashes, ...flags, ...place }
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
  /** The waiting entries that memory knows, by offset, and the size of their lines. */
  readonly #entries = new Map<number, Entry>()
  #entryBytes = 0
  #readTo = 0
  #oldestUnreadAt: number
  #isDamaged = false
  #isNameSynced: boolean
  #isAppending = false
  /** A change of the file's name or length, for which others wait. */
  #changed: Promise<unknown> = Promise.resolve()
  /** How many entries in memory and reads need the file. */
  #users = 0
  #handle: Promise<FileHandle> | undefined
  readonly #settlements = new GroupedWrites<Entry>((entries) => this.#settle(entries))

  /** @param handle - of a new file */
  constructor(
    folder: SpoolFolder,
    fields: FileFields,
    onGone: (segment: Segment) => void,
    handle?: FileHandle,
  ) {
    this.id = fields.id
    this.name = nameOf(fields)
    this.lastId = fields.lastId
    this.size = fields.size
    this.unread = fields.count
    this.isOpen = fields.kind === 'open'
    this.#oldestUnreadAt = fields.oldestAt
    this.#folder = folder
    this.#onGone = onGone
    this.#isNameSynced = handle === undefined
    this.#handle = handle && Promise.resolve(handle)
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
    return !this.isOpen && this.unread === 0 && this.#entryBytes * 2 <= this.size
  }

  /**
   * Adds entries with one write and one sync; then asks which of them memory keeps. If that fails, cuts the file back to what was
   * synced. @throws `SpoolError`
   */
  async append(entries: readonly Entry[], isKnown: (entry: Entry) => boolean): Promise<void> {
    this.#isAppending = true
    try {
      await this.#changed
      const handle = await this.#file()
      const lines = entries.map((entry) => lineOf(this.id, entry, entry))
      const content = Buffer.from(lines.join(''))
      try {
        await writeAll(handle, content, this.size)
        await handle.datasync()
        if (!this.#isNameSynced) await this.#folder.sync()
      } catch (cause) {
        await handle.truncate(this.size).catch(() => {})
        failWrite(cause)
      }
      this.#isNameSynced = true
      let offset = this.size + 1
      for (const [index, entry] of entries.entries()) {
        const bytes = Buffer.byteLength(lines[index] ?? '')
        Object.assign(entry, { segment: this, offset, length: bytes - 2 })
        offset += bytes
        this.lastId = Math.max(this.lastId, entry.id)
        if (isKnown(entry)) this.#know(entry)
        else if (this.unread++ === 0) this.#oldestUnreadAt = entry.receivedAt
      }
      this.size += content.length
      if (this.unread === 0) this.#readTo = this.size
    } finally {
      this.#isAppending = false
    }
  }

  #know(entry: Entry): void {
    this.#entries.set(entry.offset, entry)
    this.#entryBytes += entry.length
  }

  #forget(entry: Entry): void {
    if (this.#entries.delete(entry.offset)) this.#entryBytes -= entry.length
  }

  /** Ends the appends: gives the file a name with its count. A failure does no harm: the next start reads the content. */
  async seal(): Promise<void> {
    await this.#changed
    this.isOpen = false
    if (this.count === 0) return this.#drop()
    const name = nameOf({ ...this, kind: 'log', count: this.count, oldestAt: this.oldestAt })
    this.#changed = this.#folder.rename(this.name, name).then(
      () => {
        this.name = name
      },
      () => {},
    )
    await this.#changed
    if (this.#users === 0) await this.close()
  }

  /** Reads the entries that memory does not know yet; or only the failed ones, and the others later. @throws `SpoolError` */
  async readRest(isOnlyTried: boolean): Promise<readonly Entry[]> {
    const from = this.#readTo
    const { size, unread } = this
    const bytes = await this.#read(from, size - from)
    const { entries, damagedAt } = contentOf(bytes, this.id, size - from)
    const found: Entry[] = []
    for (const each of entries) {
      const offset = from + each.offset
      if (this.#entries.has(offset) || (isOnlyTried && each.attempts === 0)) continue
      const entry = Object.assign(newEntry(each, each), { segment: this, offset, length: each.length })
      this.#know(entry)
      found.push(entry)
    }
    if (isOnlyTried) {
      this.unread -= found.length
      return found
    }
    for (const offset of damagedAt) this.#reportDamage(from + offset)
    // What was appended meanwhile is read next.
    this.unread -= unread
    this.#readTo = size
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
    this.#forget(entry)
    await this.#dropIfDone()
    return false
  }

  #reportDamage(offset: number): void {
    this.#isDamaged = true
    this.#folder.reports.damaged(this.name, offset)
  }

  /** So many bytes from a position, or up to the end. Empty if another program removed the file. */
  async #read(from: number, length: number): Promise<Buffer> {
    try {
      const handle = await this.#file()
      const bytes = Buffer.allocUnsafe(length)
      let end = 0
      for (let read = 1; end < length && read > 0; end += read) {
        read = (await handle.read(bytes, end, length - end, from + end)).bytesRead
      }
      return bytes.subarray(0, end)
    } catch (cause) {
      return emptyIfGone(cause)
    }
  }

  /** Writes the state of an entry, together with others of the same time. @throws `SpoolError` */
  settle(entry: Entry): Promise<void> {
    return this.#settlements.add(entry)
  }

  async #settle(entries: readonly Entry[]): Promise<void> {
    const done = entries.filter(({ isDone }) => isDone)
    const isLast = done.length > 0 && done.length === this.count
    if (isLast && !(this.isOpen && this.#isAppending)) return this.#drop()
    await this.#writeStates([...entries].sort((a, b) => a.offset - b.offset))
    for (const entry of done) this.#forget(entry)
    await this.#dropIfDone()
  }

  /** Neighbours with one read and one write. Not synced: a power failure may restore the earlier states. Needs no space. */
  async #writeStates(entries: readonly Entry[]): Promise<void> {
    try {
      const handle = await this.#file()
      for (let from = 0, to = 0; from < entries.length; from = to) {
        const start = entries[from]?.offset ?? 0
        while (to < entries.length && (entries[to]?.offset ?? 0) - start <= neighbourBytes) to += 1
        const states = entries
          .slice(from, to)
          .map((entry) => ({ ...entry, state: stateOf(entry, entry.isDone) }))
        const last = states.at(-1)
        const bytes = Buffer.alloc((last?.offset ?? 0) - start + (last?.state.length ?? 0))
        if (states.length > 1) await handle.read(bytes, 0, bytes.length, start)
        for (const { offset, state } of states) bytes.write(state, offset - start, 'latin1')
        await writeAll(handle, bytes, start)
      }
    } catch (cause) {
      unlessGone(cause)
    }
  }

  async #dropIfDone(): Promise<void> {
    if (this.count === 0 && !this.isOpen) await this.#drop()
  }

  /** Empties an open file, and removes a closed one. A damaged file is kept for inspection. */
  async #drop(): Promise<void> {
    if (this.isOpen && !this.#isDamaged) {
      const emptied = this.#file().then((handle) => handle.truncate(0))
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
    this.#entryBytes = 0
    this.size = 0
    if (!this.isOpen) this.#onGone(this)
  }

  /** The file stays open for an entry in memory, and while it is read. */
  hold(): void {
    this.#users += 1
  }

  async release(): Promise<void> {
    this.#users -= 1
    if (this.#users === 0 && !this.isOpen) await this.close()
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.then((file) => file.close()).catch(() => {})
  }

  #file(): Promise<FileHandle> {
    this.#handle ??= this.#folder.open(this.name, 'r+').catch((error) => {
      this.#handle = undefined
      throw error
    })
    return this.#handle
  }
}

/** A write on a disk that gets full may stop in the middle. */
async function writeAll(handle: FileHandle, content: Buffer, position: number): Promise<void> {
  for (let at = 0; at < content.length; ) {
    at += (await handle.write(content, at, content.length - at, position + at)).bytesWritten
  }
}
