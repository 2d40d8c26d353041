/** A file of deliveries. What becomes of an entry is written over its state, and the file is removed when all are done. */
import type { FileHandle } from 'node:fs/promises'
import { failWrite, type SpoolFolder, unlessGone } from './folder.js'
import {
  contentIn,
  contentOf,
  type EntryContent,
  type EntryInFile,
  type EntryState,
  type FileFields,
  lineOf,
  nameOf,
  shownState,
  untried,
} from './format.js'
import { GroupedWrites } from './grouped-writes.js'

/** A delivery that waits: in a segment, or to be written into one. */
export interface Entry extends EntryContent, EntryState {
  /** Empty while only the disk has it. */
  text: string
  attempts: number
  dueAt: number
  reportedAt: number
  crashes: number
  /** By how much `crashes` rises before the next attempt; 0 if it is known to end no process. */
  suspicion: number
  isDone: boolean
  segment: Segment | undefined
  offset: number
  length: number
}

export function newEntry(
  { id, receivedAt, traceparent, text }: EntryContent,
  state: EntryState = untried,
): Entry {
  const { attempts, dueAt, reportedAt, crashes } = state
  const place = { segment: undefined, offset: 0, length: 0 }
  return {
    id,
    receivedAt,
    traceparent,
    text,
    attempts,
    dueAt,
    reportedAt,
    crashes,
    suspicion: 0,
    isDone: false,
    ...place,
  }
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
  /** How many entries behind `#readTo` wait that memory does not know. Until they are read, finished ones count, too. */
  unread: number
  isOpen: boolean
  isDamaged = false
  /** When a file that could not be read is read again. */
  dueAt = 0
  readonly #folder: SpoolFolder
  /** Called when the file has grown by so many bytes. */
  readonly #onGrown: (segment: Segment, bytes: number) => void
  /** The waiting entries that memory knows, by offset. */
  readonly #entries = new Map<number, Entry>()
  #entryBytes = 0
  #readTo = 0
  #oldestUnreadAt: number
  /** From an earlier process: its file may have lost its end. */
  readonly #isOld: boolean
  #isNameSynced: boolean
  #isAppending = false
  /** A change of the file's name or length, which others wait for. */
  #changed: Promise<unknown> = Promise.resolve()
  /** How many entries and reads need the file. */
  #users = 0
  #handle: Promise<FileHandle> | undefined
  readonly #settlements = new GroupedWrites<Entry>((entries) => this.#settle(entries))

  constructor(
    folder: SpoolFolder,
    { kind, id, lastId, count, size, oldestAt }: FileFields,
    name: string,
    onGrown: (segment: Segment, bytes: number) => void,
    handle?: FileHandle,
  ) {
    this.#folder = folder
    this.id = id
    this.name = name
    this.lastId = lastId
    this.size = size
    this.unread = count
    this.isOpen = kind === 'open'
    this.#onGrown = onGrown
    this.#oldestUnreadAt = oldestAt
    this.#isOld = handle === undefined
    this.#isNameSynced = this.#isOld
    this.#handle = handle && Promise.resolve(handle)
  }

  /** The number of waiting entries. */
  get count(): number {
    return this.#entries.size + this.unread
  }

  /** When the oldest waiting entry was received; `Infinity` without one. */
  get oldestAt(): number {
    let oldest = this.unread > 0 ? this.#oldestUnreadAt : Number.POSITIVE_INFINITY
    for (const { receivedAt } of this.#entries.values()) oldest = Math.min(oldest, receivedAt)
    return oldest
  }

  /** Whether nothing is added any more, and most of it is done: what still waits should move. */
  get isMostlyDone(): boolean {
    return !this.isOpen && this.unread === 0 && this.#entryBytes * 2 <= this.size
  }

  /**
   * Adds entries with one write and one sync. If that fails, the file is cut back to what was synced.
   *
   * @param isKnown - whether memory keeps an entry. Called when all are on the disk
   * @throws `SpoolError`
   */
  async append(entries: readonly Entry[], isKnown: (entry: Entry, index: number) => boolean): Promise<void> {
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
        if (isKnown(entry, index)) this.#know(entry)
        else this.#addUnread(entry)
      }
      this.#resize(this.size + content.length)
      if (this.unread === 0) this.#readTo = this.size
    } finally {
      this.#isAppending = false
    }
  }

  #addUnread({ receivedAt }: Entry): void {
    this.#oldestUnreadAt = this.unread === 0 ? receivedAt : Math.min(this.#oldestUnreadAt, receivedAt)
    this.unread += 1
  }

  #know(entry: Entry): void {
    this.#entries.set(entry.offset, entry)
    this.#entryBytes += entry.length
  }

  #forget(entry: Entry): void {
    if (this.#entries.delete(entry.offset)) this.#entryBytes -= entry.length
  }

  #resize(size: number): void {
    const bytes = size - this.size
    this.size = size
    this.#onGrown(this, bytes)
  }

  /** Ends the appends: gives the file a name with its count. A failure does no harm: the next start reads the content. */
  async seal(): Promise<void> {
    await this.#changed
    this.isOpen = false
    if (this.count === 0) return this.#drop()
    const { id, lastId, count, size, oldestAt } = this
    const name = nameOf({ kind: 'log', id, lastId, count, size, oldestAt })
    this.#changed = this.#folder.rename(this.name, name).then(
      () => {
        this.name = name
      },
      () => {},
    )
    await this.#changed
    if (this.#users === 0) await this.close()
  }

  /**
   * Reads the entries that memory does not know yet. Damage is reported once.
   *
   * @param isWanted - leaves out others, which are read later
   * @throws `SpoolError`
   */
  async readRest(isWanted?: (entry: EntryInFile) => boolean): Promise<readonly Entry[]> {
    const from = this.#readTo
    const { size, unread } = this
    const bytes = await this.#read(from, this.#isOld ? undefined : size - from)
    const { entries, damagedAt } = contentOf(bytes, this.id, size - from)
    const found: Entry[] = []
    for (const each of entries) {
      const offset = from + each.offset
      if (this.#entries.has(offset) || isWanted?.(each) === false) continue
      const entry = Object.assign(newEntry(each, each), { segment: this, offset, length: each.length })
      this.#know(entry)
      found.push(entry)
    }
    if (isWanted) {
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
    this.isDamaged = true
    this.#folder.reports.damaged(this.name, offset)
  }

  /** The bytes from a position to the end of the file, or so many. Empty if another program removed the file. */
  async #read(from: number, length?: number): Promise<Buffer> {
    try {
      const handle = await this.#file()
      const bytes = Buffer.allocUnsafe(length ?? Math.max(0, (await handle.stat()).size - from))
      let end = 0
      for (let read = 1; end < bytes.length && read > 0; end += read) {
        read = (await handle.read(bytes, end, bytes.length - end, from + end)).bytesRead
      }
      return bytes.subarray(0, end)
    } catch (cause) {
      return this.#folder.emptyIfGone(cause)
    }
  }

  /** Writes the states of entries that are done, delayed or begun; together with others of the same time. @throws `SpoolError` */
  settle(entry: Entry): Promise<void> {
    return this.#settlements.add(entry)
  }

  async #settle(entries: readonly Entry[]): Promise<void> {
    const done = entries.filter(({ isDone }) => isDone)
    const isLast = this.unread === 0 && done.length === this.#entries.size && done.length > 0
    if (isLast && !(this.isOpen && this.#isAppending)) return this.#drop()
    await this.#writeStates(entries)
    for (const entry of done) this.#forget(entry)
    await this.#dropIfDone()
  }

  /** Not synced: a power failure may restore the earlier states. Needs no disk space. */
  async #writeStates(entries: readonly Entry[]): Promise<void> {
    try {
      const handle = await this.#file()
      for (const group of neighboursIn(entries)) await writeStates(handle, group)
    } catch (cause) {
      unlessGone(cause)
    }
  }

  async #dropIfDone(): Promise<void> {
    if (this.count === 0 && !this.isOpen) await this.#drop()
  }

  /** Empties an open file, and removes a closed one. A damaged file is kept for inspection. */
  async #drop(): Promise<void> {
    if (this.isOpen && !this.isDamaged) {
      const emptied = this.#file().then((handle) => handle.truncate(0))
      this.#changed = emptied.catch(() => {})
      await emptied.catch(failWrite)
      this.#readTo = 0
    } else {
      this.isOpen = false
      await this.#changed
      await this.close()
      await (this.isDamaged ? this.#folder.keepDamaged(this.name) : this.#folder.remove(this.name))
    }
    this.#entries.clear()
    this.#entryBytes = 0
    this.#resize(0)
  }

  /** The file stays open for an entry in memory, and while it is read. */
  hold(): void {
    this.#users += 1
  }

  async release(): Promise<void> {
    this.#users -= 1
    if (this.#users === 0 && !this.isOpen) await this.close()
  }

  #file(): Promise<FileHandle> {
    this.#handle ??= this.#folder.open(this.name, 'r+').catch((error) => {
      this.#handle = undefined
      throw error
    })
    return this.#handle
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.then((file) => file.close()).catch(() => {})
  }
}

/** Groups of entries that stand close to each other, by position. */
function neighboursIn(entries: readonly Entry[]): Entry[][] {
  const groups: Entry[][] = []
  let end = Number.NEGATIVE_INFINITY
  for (const entry of [...entries].sort((a, b) => a.offset - b.offset)) {
    if (entry.offset - end > neighbourBytes) groups.push([])
    groups.at(-1)?.push(entry)
    end = entry.offset
  }
  return groups
}

/** One read and one write for all. */
async function writeStates(handle: FileHandle, entries: readonly Entry[]): Promise<void> {
  const states = entries.map(shownState)
  const from = entries[0]?.offset ?? 0
  const bytes = Buffer.alloc((entries.at(-1)?.offset ?? 0) - from + (states[0]?.length ?? 0))
  if (entries.length > 1) await handle.read(bytes, 0, bytes.length, from)
  for (const [index, { offset }] of entries.entries())
    bytes.write(states[index] ?? '', offset - from, 'latin1')
  await writeAll(handle, bytes, from)
}

/** A write on a disk that gets full may stop in the middle. */
async function writeAll(handle: FileHandle, content: Buffer, position: number): Promise<void> {
  for (let at = 0; at < content.length; ) {
    at += (await handle.write(content, at, content.length - at, position + at)).bytesWritten
  }
}
