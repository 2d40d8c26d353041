/**
 * The waiting deliveries: a log of segments. New deliveries go to the open segment, and each stays in its segment until
 * it is done. Memory holds the place of everything that waits, and the texts of what is next or in flight.
 */
import * as fs from 'node:fs/promises'
import { resolve } from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { type Issue, SpoolError } from '../errors.js'
import { type Backoff, backoffMs } from '../shared/waits.js'
import { contentOf, jsonOf } from '../webhooks/body.js'
import { DeadLetters, type LetterDetails } from './dead-letters.js'
import { prepareFolder, type SpoolFiles, SpoolFolder } from './folder.js'
import { diskBytesOf, type FileFields, notAttempted, parseName, type StoredEntry } from './format.js'
import { type Lock, lockFolder } from './lock.js'
import { type Entry, Segment } from './segment.js'
import { type DeliverySpoolOptions, defaults, invalidPath, reportsOf } from './spool-options.js'

const backoff: Backoff = { firstMs: 1_000, maxMs: 60_000 }

/** The bytes that may wait in memory for a slow disk, and how many of them one write has at most. */
const maxUnwrittenBytes = 64 * 2 ** 20
const maxGroupBytes = 2 ** 20

/** What is due within this time is due together, in milliseconds. */
const tickMs = 250

/** The waits after a failed read and a failed removal, in milliseconds. */
const rereadMs = 10_000
const diskRetryMs = 1_000

/** Opens the folder of a spool for this process alone. @throws `ConfigurationError` if that is not possible */
export async function openStore(
  options: Pick<DeliverySpoolOptions, 'path' | 'maxBytes' | 'concurrency' | 'logger'>,
  files: SpoolFiles = fs,
): Promise<SpoolStore> {
  // The same folder even if the process changes its working directory.
  const path = resolve(options.path)
  const { maxBytes = defaults.maxBytes, concurrency = defaults.concurrency } = options
  const reports = reportsOf(path, options.logger)
  await prepareFolder(path, files)
  const lock = await lockFolder(path, concurrency, reports)
  const store = new SpoolStore(new SpoolFolder(path, files, reports), lock, maxBytes)
  await store.read().catch(async (cause) => {
    await lock.release()
    throw cause
  })
  return store
}

export class SpoolStore {
  readonly letters: DeadLetters
  /** Set when `close` waits no longer. */
  isEnding = false
  /** The oldest first. */
  readonly #segments = new Set<Segment>()
  #open: Segment | undefined
  /** The entries of the next append, their bytes, and its end. */
  #group: StoredEntry[] = []
  #groupBytes = 0
  #appended: Promise<void> = Promise.resolve()
  /** Entries that have failed or could not be read, by when they are due. */
  readonly #failed = new Map<number, Entry[]>()
  /** The ids of the dead letters at the start: a delivery with such an id was not removed in time. */
  #lettersBefore: ReadonlySet<number> = new Set()
  #unwrittenBytes = 0
  #lastId = 0
  readonly #originAt = Date.now() - performance.now()

  constructor(
    readonly folder: SpoolFolder,
    readonly lock: Lock,
    private readonly maxBytes: number,
  ) {
    this.letters = new DeadLetters(folder)
  }

  /** The time by which entries are due: it only goes forward. */
  now(): number {
    return Math.floor(this.#originAt + performance.now())
  }

  /** Reads the folder, and of its dead letters only the names. @throws `ConfigurationError` */
  async read(): Promise<void> {
    const { path, reports } = this.folder
    const listed = await this.folder.list().catch((cause) => invalidPath(path, 'cannot be read', cause))
    for (const { name, isFile } of listed) {
      const found = parseName(name)
      const isOurs = typeof found === 'object'
      // Ignores folders (lost+found), unless they have a name of ours.
      if (isFile ? found === 'unknown' : isOurs) reports.damaged(name)
      if (isFile && found === 'unfinished') await this.folder.remove(name).catch(() => {})
      if (!isFile || !isOurs) continue
      if (found.kind === 'open' || found.kind === 'closed') await this.#load(found)
      else this.letters.track(found)
      this.#lastId = Math.max(this.#lastId, found.lastId)
    }
    this.#lettersBefore = new Set(this.letters.ids)
  }

  async #load(fields: FileFields): Promise<void> {
    const segment = this.#addSegment(fields)
    try {
      for (const entry of await segment.load()) this.#schedule(entry)
      this.#lastId = Math.max(this.#lastId, segment.lastId)
    } catch (err) {
      this.#segments.delete(segment)
      const message = 'Reading a file failed: it stays for the next start'
      this.folder.reports.readFailed(segment.name, err, message)
    }
  }

  #addSegment(fields: FileFields): Segment {
    const segment = new Segment(this.folder, fields, (gone) => this.#segments.delete(gone))
    this.#segments.add(segment)
    return segment
  }

  get count(): number {
    return [...this.#segments].reduce((sum, { count }) => sum + count, 0)
  }

  /** Whether an entry waits that was never attempted. */
  get hasNew(): boolean {
    return [...this.#segments].some(({ hasNew }) => hasNew)
  }

  get oldestReceivedAt(): number | undefined {
    const oldest = Math.min(...[...this.#segments].map(({ waiting }) => waiting.oldestAt))
    return oldest === Number.POSITIVE_INFINITY ? undefined : oldest
  }

  /** From when on the next failed entries are due; `Infinity` without one. */
  get nextDueAt(): number {
    return Math.min(...this.#failed.keys())
  }

  /** Keeps a delivery; resolves when it is on the disk. @throws `SpoolError` */
  async add(text: string, traceparent?: string): Promise<void> {
    const bytes = Buffer.byteLength(text)
    const unwritten = this.#unwrittenBytes + bytes
    if (unwritten > maxUnwrittenBytes) {
      const message = `The disk is too slow: ${unwritten} bytes wait for it. Use a faster one, or more processes.`
      throw new SpoolError(message, { reason: 'disk' })
    }
    let used = this.letters.keptBytes
    // The next append empties a segment in which nothing waits.
    for (const { count, size } of this.#segments) used += count > 0 ? diskBytesOf(size) : 0
    if (used + diskBytesOf(unwritten) > this.maxBytes) {
      const what = `The spool is full: ${used} bytes wait, and \`maxBytes\` is ${this.maxBytes}`
      throw new SpoolError(`${what}. See why \`deliver\` fails or is slow.`, { reason: 'full' })
    }
    this.#unwrittenBytes = unwritten
    await this.#addNew(text, Date.now(), traceparent).finally(() => {
      this.#unwrittenBytes -= bytes
    })
  }

  /** Keeps a body that is no delivery. @throws `SpoolError` */
  addInvalid(body: unknown, issues: readonly Issue[]): Promise<void> {
    return this.letters.addInvalid(this.#newId(), body, issues)
  }

  /** Higher than all earlier ids: about the time in microseconds, until 2112, when file names have no more digits. */
  #newId(): number {
    this.#lastId = Math.max(this.#lastId + 1, Math.min(Date.now() * 1_000, 2 ** 52))
    return this.#lastId
  }

  /** Entries of the same turn, and those that arrive during an append, share the next one. */
  #append(entry: StoredEntry, bytes: number): Promise<void> {
    if (this.#group.length === 0 || this.#groupBytes >= maxGroupBytes) {
      this.#group = []
      this.#groupBytes = 0
      this.#appended = this.#appendAfter(this.#appended, this.#group)
    }
    this.#group.push(entry)
    this.#groupBytes += bytes
    return this.#appended
  }

  async #appendAfter(earlier: Promise<void>, entries: StoredEntry[]): Promise<void> {
    await Promise.allSettled([earlier, setImmediate()])
    if (this.#group === entries) this.#group = []
    const segment = await this.#segmentWithRoom()
    try {
      for (const entry of await segment.append(entries)) this.#schedule(entry)
    } catch (error) {
      // After a failed sync the system may show what the disk does not have, and not report it again.
      await segment.seal()
      throw error
    }
  }

  async #segmentWithRoom(): Promise<Segment> {
    if (this.#open && (await this.#open.makeRoom())) return this.#open
    await this.#open?.seal()
    const id = this.#newId()
    this.#open = this.#addSegment({ kind: 'open', id, lastId: id, count: 0, size: 0, oldestAt: Date.now() })
    return this.#open
  }

  /** Only the place of an entry stays in memory until it is due. Its times are not believed if the clock was set back. */
  #schedule(entry: Entry): void {
    const now = this.now()
    entry.text = ''
    entry.dueAt = Math.min(entry.dueAt, now + backoff.maxMs)
    entry.reportedAt = Math.min(entry.reportedAt, now)
    const dueFrom = tickMs * Math.max(Math.ceil(entry.dueAt / tickMs), Math.floor(now / tickMs))
    const together = this.#failed.get(dueFrom)
    if (together) together.push(entry)
    else this.#failed.set(dueFrom, [entry])
  }

  /** The next entry that was never attempted. Only one call of this method or `takeFailed` may run at a time. */
  async takeNew(): Promise<Entry | undefined> {
    for (const segment of this.#segments) {
      while (segment.hasNew) {
        const entry = segment.takeNew()
        if (await this.#readText(entry)) return entry
      }
    }
    return undefined
  }

  /** The next failed entry that is due. */
  async takeFailed(): Promise<Entry | undefined> {
    for (;;) {
      const dueFrom = this.nextDueAt
      const due = dueFrom <= this.now() ? this.#failed.get(dueFrom) : undefined
      const entry = due?.shift()
      if (due?.length === 0) this.#failed.delete(dueFrom)
      if (entry === undefined || (await this.#readText(entry))) return entry
    }
  }

  /** Resolves with whether the entry can be delivered. */
  async #readText(entry: Entry): Promise<boolean> {
    if (this.#lettersBefore.has(entry.id)) {
      void this.remove(entry)
      return false
    }
    try {
      return await entry.segment.readText(entry)
    } catch (err) {
      this.folder.reports.readFailed(entry.segment.name, err, 'Reading a file failed, will be repeated')
      entry.dueAt = this.now() + rereadMs
      this.#schedule(entry)
      return false
    }
  }

  /** Removes a finished entry. While the disk fails, the entry stays in flight, so it is not delivered again. */
  async remove(entry: Entry): Promise<void> {
    entry.isDone = true
    for (;;) {
      try {
        return await entry.segment.writeState(entry)
      } catch (error) {
        this.folder.reports.writeFailed(error, 'Removing a finished delivery failed, will be repeated')
      }
      if (this.isEnding) return
      await sleep(diskRetryMs)
    }
  }

  /** Delays a failed entry. From its second failure on, moves the entry out of a segment of which most is done. */
  async postpone(entry: Entry): Promise<void> {
    const isMovable = entry.attempts > 0 && entry.segment.isMostlyDone
    entry.attempts += 1
    entry.dueAt = this.now() + backoffMs(entry.attempts, backoff)
    if (isMovable) {
      // On a full disk the entry stays.
      const failure: unknown = await this.#append(entry, entry.length).catch((error) => error)
      if (failure === undefined) return this.remove(entry)
    }
    await this.writeState(entry)
    this.#schedule(entry)
  }

  async writeState(entry: Entry): Promise<void> {
    const message = 'Writing the due time failed: the next start repeats the delivery at once'
    await entry.segment.writeState(entry).catch((error) => this.folder.reports.writeFailed(error, message))
  }

  /** Makes a dead letter of an entry. Resolves with whether the disk had space for it. */
  async makeDeadLetter(entry: Entry, kind: 'stuck' | 'unreadable', details: LetterDetails): Promise<boolean> {
    try {
      await this.letters.add(kind, entry, details)
    } catch (error) {
      this.folder.reports.writeFailed(error, 'Writing a dead letter failed, will be repeated')
      return false
    }
    await this.remove(entry)
    return true
  }

  /** Makes a delivery of a dead letter; false if the letter is gone. @throws as `parse`, or `SpoolError`: the letter stays then */
  async retry(id: number, parse: (body: unknown) => unknown): Promise<boolean> {
    const letter = await this.letters.read(id)
    if (letter === undefined) return false
    parse(letter.body)
    const text = jsonOf(contentOf(letter.body))
    // The delivery gets a new id: a start would take one with the id of a letter for the delivery that became this letter.
    return this.letters.remove(id, () => this.#addNew(text, letter.receivedAt, letter.traceparent))
  }

  #addNew(text: string, receivedAt: number, traceparent: string | undefined): Promise<void> {
    const entry = { id: this.#newId(), receivedAt, traceparent, text, ...notAttempted }
    return this.#append(entry, text.length)
  }

  /** Closes all files, and releases the folder. The next process delivers `inFlight` deliveries one at a time. */
  async close(inFlight = 0): Promise<void> {
    await this.#open?.seal()
    for (const segment of this.#segments) await segment.close()
    await this.lock.release(inFlight)
  }
}
