/**
 * The waiting deliveries: a log of segments, of which one is open and gets the new ones. A delivery stays in its segment until
 * it is done. Memory holds the places of what has failed, and the texts of what is next or in flight.
 */
import type { FileHandle } from 'node:fs/promises'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { type Issue, SpoolError } from '../errors.js'
import type { Backoff } from '../shared/waits.js'
import { jsonOf } from '../webhooks/body.js'
import { contentOf as jsonContentOf } from '../webhooks/content.js'
import { DeadLetters, type LetterDetails } from './dead-letters.js'
import { failWrite, type SpoolFiles, SpoolFolder } from './folder.js'
import type { EntryState, FileFields, StoredEntry } from './format.js'
import { closedFieldsOf, diskBytesOf, nameOf, parseName, untried } from './format.js'
import { GroupedWrites, maxGroupBytes } from './grouped-writes.js'
import { type Entry, Segment } from './segment.js'
import type { SpoolReports } from './spool-options.js'

export type { Entry } from './segment.js'

/** A failed entry, or a file that could not be read. */
type Tried = Entry | Segment

/** 1 s, 2 s, 4 s and so on to 1 min. */
export const backoff: Backoff = { firstMs: 1_000, maxMs: 60_000 }

/** A segment of this size gets no more entries. 256 KiB to 8 MiB make no difference in speed. */
const segmentBytes = 2 ** 20

/** The bytes that may wait in memory for a slow disk. */
const maxUnwrittenBytes = 64 * 2 ** 20

/** What is due within this time is due together, in milliseconds. */
const tickMs = 250

/** How many texts of failed deliveries are read at a time. */
const maxReads = 64

/** The waits after a failed read and a failed removal, in milliseconds. */
const rereadMs = 10_000
const diskRetryMs = 1_000

interface StoreOptions {
  readonly path: string
  readonly maxBytes: number
  readonly reports: SpoolReports
}

export class SpoolStore {
  readonly letters: DeadLetters
  /** Set when `close` waits no longer. */
  isEnding = false
  readonly #options: StoreOptions
  readonly #folder: SpoolFolder
  readonly #segments = new Set<Segment>()
  #open: Segment | undefined
  readonly #additions = new GroupedWrites<StoredEntry>((entries) => this.#append(entries))
  /** The segments with entries that memory does not know, the oldest first. */
  readonly #unread: Segment[] = []
  /** What was never tried and is next, and the size of its lines. */
  readonly #fresh: Entry[] = []
  #freshBytes = 0
  /** What has failed, by the time from which it is due; what is due now, and of that with its text what is next. */
  readonly #tried = new Map<number, Tried[]>()
  #due: Tried[] = []
  #dueNext: Entry[] = []
  /** The ids of the dead letters at the start: a delivery with such an id was not removed in time. */
  #lettersBefore: ReadonlySet<number> = new Set()
  #unwrittenBytes = 0
  #lastId = 0
  readonly #startedAt = Date.now() - performance.now()

  constructor(options: StoreOptions, files: SpoolFiles) {
    this.#options = options
    this.#folder = new SpoolFolder(options.path, files, options.reports)
    this.letters = new DeadLetters(this.#folder)
  }

  /** The time by which entries are due: it only goes forward. */
  now(): number {
    return Math.floor(this.#startedAt + performance.now())
  }

  /** Reads the names in the folder, and the segment that a killed process left open. @throws the system's error */
  async open(): Promise<void> {
    for (const [index, { name, isFile }] of (await this.#folder.list()).entries()) {
      // Lets other work run while it opens a folder of 100,000 files.
      if (index % 1_000 === 0) await setImmediate()
      const found = parseName(name)
      const isOurs = typeof found === 'object'
      // Ignores folders (lost+found), unless they have a name of ours.
      if (isFile ? found === 'unknown' : isOurs) this.#options.reports.damaged(name)
      if (!isFile) continue
      if (found === 'unfinished') await this.#folder.remove(name).catch(() => {})
      const fields = isOurs && found.kind === 'open' ? await this.#recover(found) : found
      if (typeof fields !== 'object') continue
      if (fields.kind === 'log') this.#unread.push(this.#addSegment(fields))
      else this.letters.track(fields)
      this.#lastId = Math.max(this.#lastId, fields.lastId)
    }
    this.#lettersBefore = new Set(this.letters.ids)
  }

  #addSegment(fields: FileFields, file?: FileHandle): Segment {
    const segment = new Segment(this.#folder, fields, (gone) => this.#segments.delete(gone), file)
    this.#segments.add(segment)
    return segment
  }

  /** Closes the segment that a killed process left open, without the line that it was writing. */
  async #recover(open: FileFields): Promise<FileFields | undefined> {
    const name = nameOf(open)
    const bytes = await this.#folder.read(name)
    const closed = closedFieldsOf(bytes, open)
    if (closed === undefined) await this.#folder.remove(name)
    else {
      if (closed.size < bytes.length) await this.#folder.cut(name, closed.size)
      await this.#folder.rename(name, nameOf(closed))
    }
    return closed
  }

  /** The number of waiting entries; until all segments are read, it includes finished entries of an earlier process. */
  get count(): number {
    return sumOf(this.#segments, ({ count }) => count)
  }

  /** When the oldest waiting entry was received. */
  get oldestReceivedAt(): number | undefined {
    const oldest = Math.min(...[...this.#segments].map(({ oldestAt }) => oldestAt))
    return oldest === Number.POSITIVE_INFINITY ? undefined : oldest
  }

  /** From when on the next failed entries are due; `Infinity` without one. */
  get nextDueAt(): number {
    return Math.min(...this.#tried.keys())
  }

  /** Keeps a delivery; resolves when it is on the disk. @throws `SpoolError` */
  add(text: string, traceparent?: string): Promise<void> {
    const bytes = Buffer.byteLength(text)
    return this.#whileUnwritten(bytes, () => {
      const used = this.letters.keptBytes + sumOf(this.#segments, ({ size }) => diskBytesOf(size))
      const { maxBytes } = this.#options
      if (used + diskBytesOf(this.#unwrittenBytes) > maxBytes) {
        const message = `The spool is full: ${used} bytes wait, and maxBytes is ${maxBytes}.`
        throw new SpoolError(message, { reason: 'full' })
      }
      const entry = { ...untried, id: this.#newId(), receivedAt: Date.now(), traceparent, text }
      return this.#additions.add(entry, bytes)
    })
  }

  /** Keeps a body that is no delivery. @throws `SpoolError` */
  addInvalid(body: unknown, bytes: number, issues: readonly Issue[]): Promise<void> {
    return this.#whileUnwritten(bytes, () => this.letters.addInvalid(this.#newId(), body, issues))
  }

  /** About the time in microseconds, and always higher than earlier ids. */
  #newId(): number {
    this.#lastId = Math.max(this.#lastId + 1, Date.now() * 1_000)
    return this.#lastId
  }

  async #whileUnwritten(bytes: number, write: () => Promise<void>): Promise<void> {
    // Counted before the first `await`, so that later additions see these bytes.
    this.#unwrittenBytes += bytes
    try {
      if (this.#unwrittenBytes > maxUnwrittenBytes) {
        const message = `The disk is too slow: ${this.#unwrittenBytes} bytes wait for it.`
        throw new SpoolError(message, { reason: 'disk' })
      }
      await write()
    } finally {
      this.#unwrittenBytes -= bytes
    }
  }

  async #append(entries: readonly StoredEntry[]): Promise<void> {
    if (this.#open && this.#open.size >= segmentBytes) await this.#open.seal()
    if (!this.#open?.isOpen) this.#open = await this.#create()
    const segment = this.#open
    // Memory keeps the texts if no older entry has to be read first, and there is room.
    const areNext = this.#unread.length + segment.unread === 0 && this.#freshBytes <= maxGroupBytes
    try {
      this.#queue(await segment.append(entries, areNext))
    } catch (error) {
      // After a failed sync the system may show what the disk does not have, and not report it again.
      await segment.seal().catch(() => {})
      throw error
    }
    if (!areNext && !this.#unread.includes(segment)) this.#unread.push(segment)
  }

  async #create(): Promise<Segment> {
    const id = this.#newId()
    const fields: FileFields = { kind: 'open', id, lastId: id, count: 0, size: 0, oldestAt: Date.now() }
    return this.#addSegment(fields, await this.#folder.open(nameOf(fields), 'wx+').catch(failWrite))
  }

  /** Puts each entry into its queue. */
  #queue(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (this.#lettersBefore.has(entry.id)) void this.remove(entry)
      else if (entry.attempts > 0) this.#wait(entry)
      else {
        this.#fresh.push(entry)
        this.#freshBytes += entry.length
      }
    }
  }

  /** An entry leaves memory until it is due, but for its place. If the time of day was set back, its times are not believed. */
  #wait(entry: Entry): void {
    entry.text = ''
    entry.dueAt = Math.min(entry.dueAt, this.now() + backoff.maxMs)
    entry.reportedAt = Math.min(entry.reportedAt, this.now())
    this.#addTried(entry)
  }

  #addTried(item: Tried): void {
    const dueFrom = tickMs * Math.max(Math.ceil(item.dueAt / tickMs), Math.floor(this.now() / tickMs))
    const together = this.#tried.get(dueFrom)
    if (together) together.push(item)
    else this.#tried.set(dueFrom, [item])
  }

  /** The next entry that was never tried. Only one call may run at a time. Also finds what an earlier process tried. */
  async takeFresh(): Promise<Entry | undefined> {
    for (let [segment] = this.#unread; segment && this.#fresh.length === 0; [segment] = this.#unread) {
      try {
        this.#queue(await segment.readRest())
        // What was appended meanwhile is read next.
        if (segment.unread > 0) continue
      } catch (error) {
        this.#readLater(segment, segment, error)
      }
      this.#unread.shift()
    }
    const entry = this.#fresh.shift()
    this.#freshBytes -= entry?.length ?? 0
    return entry
  }

  /** The next failed entry that is due. Only one call may run at a time. */
  async takeTried(): Promise<Entry | undefined> {
    while (this.#dueNext.length === 0) {
      const { nextDueAt } = this
      if (this.#due.length === 0 && nextDueAt <= this.now()) {
        this.#due = (this.#tried.get(nextDueAt) ?? []).sort((a, b) => a.dueAt - b.dueAt)
        this.#tried.delete(nextDueAt)
      }
      const items = this.#due.splice(0, maxReads)
      if (items.length === 0) return undefined
      this.#dueNext = (await Promise.all(items.map((item) => this.#readAgain(item)))).flat()
    }
    return this.#dueNext.shift()
  }

  /** Reads the text of an entry that is due again; a file only later, in its turn. */
  async #readAgain(item: Tried): Promise<Entry[]> {
    if (item instanceof Segment) {
      this.#unread.push(item)
      return []
    }
    try {
      return (await item.segment.readText(item)) ? [item] : []
    } catch (error) {
      this.#readLater(item, item.segment, error)
      return []
    }
  }

  #readLater(item: Tried, { name }: Segment, err: unknown): void {
    const fields = { event: 'spool.read-failed', file: this.#folder.pathOf(name), err }
    this.#options.reports.sparse('error', fields, 'Reading a file failed, will be repeated')
    item.dueAt = this.now() + rereadMs
    this.#addTried(item)
  }

  /** Removes a finished entry. While the disk fails, the entry stays in flight, so it is not delivered again. */
  async remove(entry: Entry): Promise<void> {
    entry.isDone = true
    for (let failures = 0; failures === 0 || !this.isEnding; failures += 1) {
      try {
        return await entry.segment.settle(entry)
      } catch (err) {
        const message = 'Removing a delivery that is done failed, will be repeated'
        if (failures === 0) this.#options.reports.loss('error', { event: 'spool.write-failed', err }, message)
      }
      await sleep(diskRetryMs)
    }
  }

  /** Delays a failed entry. If most of its segment is done, it moves to the open one, so that its own can be removed. */
  async postpone(entry: Entry, next: Partial<EntryState>): Promise<void> {
    // Not behind what has to be read first.
    const isMovable = entry.attempts > 0 && entry.segment.isMostlyDone && this.#unread.length === 0
    Object.assign(entry, next)
    if (isMovable) {
      // On a full disk it stays.
      const failure: unknown = await this.#additions.add(entry, entry.length).catch((error) => error)
      if (failure === undefined) return this.remove(entry)
    }
    await this.writeState(entry)
    this.#wait(entry)
  }

  /** Writes what became of an entry. */
  async writeState(entry: Entry): Promise<void> {
    const message = 'Writing when to repeat a delivery failed: the next start repeats it at once'
    await entry.segment.settle(entry).catch((error) => this.#reportWrite(error, message))
  }

  /** Makes a dead letter of an entry. Resolves with whether the disk had space for it. */
  async makeDeadLetter(entry: Entry, kind: 'stuck' | 'unreadable', details: LetterDetails): Promise<boolean> {
    try {
      await this.letters.add(kind, entry, details)
    } catch (error) {
      this.#reportWrite(error, 'Writing a dead letter failed, will be repeated')
      return false
    }
    await this.remove(entry)
    return true
  }

  /**
   * Returns a dead letter to the waiting deliveries, as never tried. Resolves with false if it is gone.
   *
   * @param parse - throws if the body is no delivery
   * @throws its error, or `SpoolError`: the letter stays, also if the delivery is put back already
   */
  async retry(id: number, parse: (body: unknown) => unknown): Promise<boolean> {
    const letter = await this.letters.read(id)
    if (letter === undefined) return false
    parse(letter.body)
    const { receivedAt, traceparent } = letter
    const text = jsonOf(jsonContentOf(letter.body).value)
    // With a new id: a delivery with the id of a letter is one that became it.
    const entry = { ...untried, id: this.#newId(), receivedAt, traceparent, text }
    return this.letters.remove(id, () => this.#additions.add(entry, text.length))
  }

  /** Closes the open segment, and all files. */
  async close(): Promise<void> {
    if (this.#open?.isOpen) await this.#open.seal()
    for (const segment of this.#segments) await segment.close()
  }

  #reportWrite(err: unknown, message: string): void {
    this.#options.reports.sparse('error', { event: 'spool.write-failed', err }, message)
  }
}

function sumOf<Item>(items: Iterable<Item>, value: (item: Item) => number): number {
  let sum = 0
  for (const item of items) sum += value(item)
  return sum
}
