/**
 * The waiting deliveries. Deliveries that are kept together share a file; a failed delivery gets a file of its own, whose
 * name says when it is due. Memory holds the names, and the text of the deliveries that are next or in flight.
 */
import { join } from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { type Issue, SpoolError } from '../errors.js'
import { DeadLetters, type LetterDetails } from './dead-letters.js'
import { DueQueue } from './due-queue.js'
import { type SpoolFiles, SpoolFolder } from './folder.js'
import {
  contentOf,
  diskBytesOf,
  type FileFields,
  fileOf,
  type Line,
  type NextAttempt,
  nameOf,
  parseName,
  receivedAtOf,
  untried,
} from './format.js'
import { GroupedWrites } from './grouped-writes.js'
import type { SpoolReports } from './spool-options.js'

/** The bytes that may wait in memory for a slow disk. */
const maxUnwrittenBytes = 64 * 2 ** 20

/** The waits after a failed read and a failed removal, in milliseconds. */
const rereadMs = 10_000
const diskRetryMs = 1_000

/** A delivery that was taken from the store. */
export interface Entry extends Line, Pick<NextAttempt, 'attempts' | 'reportedAt'> {
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** For the store alone. */
  readonly file: WaitingFile
}

/** A file of deliveries. */
interface WaitingFile {
  /** Its name on the disk; older than `fields` if a rename failed. */
  name: string
  fields: FileFields
  /** The number of waiting entries. Until the file is read, finished entries count, too. */
  waiting: number
  /** The number of its entries in memory. */
  inMemory: number
  isDamaged: boolean
  /** Removes finished entries. */
  removals?: GroupedWrites<Entry>
}

interface StoreOptions {
  readonly path: string
  readonly maxBytes: number
  readonly reports: SpoolReports
  /** Aborted when `close` stops waiting. */
  readonly ending: AbortSignal
}

export class SpoolStore {
  readonly letters: DeadLetters
  readonly #folder: SpoolFolder
  readonly #options: StoreOptions
  readonly #files = new Set<WaitingFile>()
  /** Never tried and failed deliveries: the files to read, and the entries of read files. */
  readonly #queues = {
    fresh: { files: new DueQueue<WaitingFile>(), entries: [] as Entry[] },
    tried: { files: new DueQueue<WaitingFile>(), entries: [] as Entry[] },
  }
  /** The ids of entries that had their own file, or were dead letters, when the folder was opened. */
  #movedBefore = new Set<number>()
  readonly #additions = new GroupedWrites<string>((texts) => this.#write(texts, this.#newId(texts.length)))
  #unwrittenBytes = 0
  #lastId = 0
  #count = 0
  #bytes = 0

  constructor(options: StoreOptions, files: SpoolFiles) {
    this.#options = options
    this.#folder = new SpoolFolder(options.path, files)
    this.letters = new DeadLetters(this.#folder, options.reports)
  }

  /**
   * Reads the names in the folder, reports damaged ones, and removes unfinished files of an earlier process.
   *
   * @throws the system's error
   */
  async open(): Promise<void> {
    const batches: { readonly name: string; readonly fields: FileFields }[] = []
    for (const [index, { name, isFile }] of (await this.#folder.list()).entries()) {
      // Lets other work run while it opens a folder of 100,000 files.
      if (index % 1_000 === 0) await setImmediate()
      const fields = parseName(name)
      const isOurs = typeof fields === 'object'
      // Ignores folders (lost+found), unless they have a name of ours.
      if (isFile ? fields === 'unknown' : isOurs) this.#options.reports.damaged(name)
      if (!isFile) continue
      if (fields === 'unfinished') await this.#folder.remove(name).catch(() => {})
      if (isOurs && fields.kind === 'batch') batches.push({ name, fields })
      if (isOurs && fields.kind !== 'batch') this.letters.track(fields)
    }
    const { ids } = this.letters
    this.#lastId = ids.at(-1) ?? 0
    const letterIds = new Set(ids)
    this.#movedBefore = new Set(ids)
    // In reverse: each file is then added at the end of its queue, which is cheap.
    for (const { name, fields } of batches.reverse()) {
      const isLetter = fields.count === 1 && letterIds.has(fields.id)
      // The earlier process ended between writing a letter and removing its delivery, or the reverse.
      if (isLetter) await this.#folder.remove(name).catch(() => {})
      else this.#add(name, fields)
      if (fields.count === 1) this.#movedBefore.add(fields.id)
    }
  }

  /** The number of waiting entries; until all files are read, it includes finished entries of an earlier process. */
  get count(): number {
    return this.#count
  }

  /** When the oldest waiting entry was received. */
  get oldestReceivedAt(): number | undefined {
    let oldest = Number.POSITIVE_INFINITY
    for (const { fields } of this.#files) oldest = Math.min(oldest, fields.id)
    return this.#files.size === 0 ? undefined : receivedAtOf(oldest)
  }

  /** When the first failed entry is due; `undefined` without one. */
  get nextDueAt(): number | undefined {
    return this.#queues.tried.files.first?.fields.dueAt
  }

  /** When the last failed entry is due; 0 without one. */
  get lastDueAt(): number {
    return this.#queues.tried.files.last?.fields.dueAt ?? 0
  }

  /** Keeps a delivery; resolves when it is on the disk. @throws `SpoolError` */
  add(text: string): Promise<void> {
    const bytes = Buffer.byteLength(text)
    return this.#whileUnwritten(bytes, () => {
      const used = this.#bytes + this.letters.keptBytes
      const { maxBytes } = this.#options
      if (used + diskBytesOf(this.#unwrittenBytes) > maxBytes) {
        const message = `The spool is full: ${used} bytes wait, and maxBytes is ${maxBytes}.`
        throw new SpoolError(message, { reason: 'full' })
      }
      return this.#additions.add(text, bytes)
    })
  }

  /** Keeps a body that is no delivery. @throws `SpoolError` */
  addInvalid(body: unknown, bytes: number, issues: readonly Issue[]): Promise<void> {
    return this.#whileUnwritten(bytes, () => this.letters.addInvalid(this.#newId(), body, issues))
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

  /** The first of so many ids. An id is the time in microseconds, and always higher than earlier ids. */
  #newId(count = 1): number {
    const id = Math.max(this.#lastId + 1, Date.now() * 1_000)
    this.#lastId = id + count - 1
    return id
  }

  /** Writes a file of new entries, or of one failed entry. @throws `SpoolError` */
  async #write(texts: readonly string[], id: number, next = untried): Promise<void> {
    const { name, fields, content } = fileOf('batch', id, texts, next)
    await this.#folder.write(name, content)
    this.#add(name, fields)
  }

  /** Counts a file on the disk, and adds it to its queue. */
  #add(name: string, fields: FileFields): void {
    const { id, count, bytes } = fields
    const file = { name, fields, waiting: count, inMemory: 0, isDamaged: false }
    this.#files.add(file)
    this.#lastId = Math.max(this.#lastId, id + count - 1)
    this.#count += count
    this.#bytes += diskBytesOf(bytes)
    this.#enqueue(file)
  }

  #enqueue(file: WaitingFile): void {
    this.#queues[file.fields.dueAt === 0 ? 'fresh' : 'tried'].files.add(file)
  }

  /** The next never tried entry, or the next failed entry that is due. Only one call may run at a time. */
  async take(which: 'fresh' | 'tried', now: number): Promise<Entry | undefined> {
    const queue = this.#queues[which]
    while (queue.entries.length === 0) {
      const files = queue.files.takeDue(now)
      if (files.length === 0) return undefined
      queue.entries = (await Promise.all(files.map((file) => this.#read(file, now)))).flat()
    }
    return queue.entries.shift()
  }

  /** The waiting entries of a file; none if the file is unreadable now. */
  async #read(file: WaitingFile, now: number): Promise<Entry[]> {
    try {
      const lines = await this.#linesOf(file)
      this.#setWaiting(file, lines.length)
      if (lines.length === 0) await this.#drop(file)
      file.inMemory = lines.length
      const { attempts, reportedAt } = file.fields
      return lines.map((line) => ({ ...line, receivedAt: receivedAtOf(line.id), attempts, reportedAt, file }))
    } catch (error) {
      const fields = { event: 'spool.read-failed', file: join(this.#options.path, file.name), err: error }
      this.#options.reports.sparse('error', fields, 'Reading a file failed, will be repeated')
      file.fields = { ...file.fields, dueAt: now + rereadMs }
      this.#enqueue(file)
      return []
    }
  }

  /** Reads a file, and reports damage once. */
  async #linesOf(file: WaitingFile): Promise<readonly Line[]> {
    const { name, fields } = file
    const { lines, damagedAt } = contentOf(await this.#folder.read(name), fields)
    if (!file.isDamaged) for (const offset of damagedAt) this.#options.reports.damaged(name, offset)
    file.isDamaged ||= damagedAt.length > 0
    if (fields.count === 1) return lines
    // The earlier process may have ended between writing an entry elsewhere and marking it here.
    const moved = lines.filter(({ id }) => this.#movedBefore.has(id))
    if (moved.length > 0) await this.#folder.markDone(name, moved)
    return lines.filter(({ id }) => !this.#movedBefore.has(id))
  }

  /** Removes a finished entry. While the disk fails, the entry stays in flight, so it is not delivered again. */
  async remove(entry: Entry): Promise<void> {
    const { file } = entry
    file.removals ??= new GroupedWrites((done) => this.#removeAll(file, done))
    const { ending } = this.#options
    for (let failures = 0; failures === 0 || !ending.aborted; failures += 1) {
      try {
        return await file.removals.add(entry)
      } catch (err) {
        const message = 'Removing a delivery that is done failed, will be repeated'
        if (failures === 0) this.#options.reports.loss('error', { event: 'spool.write-failed', err }, message)
      }
      await sleep(diskRetryMs, undefined, { signal: ending }).catch(() => {})
    }
  }

  async #removeAll(file: WaitingFile, done: readonly Entry[]): Promise<void> {
    // With its last entries the whole file is removed, without marks.
    if (done.length === file.waiting) return this.#drop(file)
    await this.#folder.markDone(file.name, done)
    this.#setWaiting(file, file.waiting - done.length)
    await this.#release(file, done.length)
  }

  /** Delays an entry: in a file of its own, or, if the disk is full, together with its whole file. */
  async postpone(entry: Entry, next: NextAttempt): Promise<void> {
    const { id, file, text } = entry
    try {
      if (file.fields.count > 1) {
        await this.#write([text], id, next)
        return await this.remove(entry)
      }
    } catch (err) {
      this.#reportWrite(err, 'Writing when to repeat a delivery failed: its file is repeated as a whole')
    }
    file.fields = { ...file.fields, ...next }
    await this.#release(file, 1)
  }

  /** Makes a dead letter of an entry. Resolves with whether the disk had space for it. */
  async makeDeadLetter(entry: Entry, kind: 'stuck' | 'unreadable', details: LetterDetails): Promise<boolean> {
    const { id, text, file } = entry
    try {
      await this.letters.add(fileOf(kind, id, [text, JSON.stringify(details)]))
      await this.remove(entry)
      return true
    } catch (err) {
      this.#reportWrite(err, 'Writing a dead letter failed')
    }
    if (file.fields.count > 1) return false
    try {
      // A letter without details needs no disk space.
      const fields = { ...file.fields, kind }
      await this.#folder.rename(file.name, nameOf(fields))
      this.letters.track(fields)
      this.#forget(file)
      return true
    } catch {
      return false
    }
  }

  /** Returns a dead letter to the waiting deliveries. Resolves with false if it is gone. @throws `SpoolError` */
  async retry(id: number, text: string): Promise<boolean> {
    // With its id: if the letter cannot be removed, or the process dies first, the next start finds both files, and keeps
    // the letter. A second try writes the same file again.
    const { name, fields, content } = fileOf('batch', id, [text])
    const isRemoved = await this.letters.remove(id, () => this.#folder.write(name, content))
    if (isRemoved) this.#add(name, fields)
    return isRemoved
  }

  #setWaiting(file: WaitingFile, waiting: number): void {
    this.#count += waiting - file.waiting
    file.waiting = waiting
  }

  /** Removes entries from memory. After the last one, its file is read again if entries still wait in it. */
  async #release(file: WaitingFile, count: number): Promise<void> {
    file.inMemory -= count
    if (file.inMemory > 0) return
    const name = nameOf(file.fields)
    try {
      await this.#folder.rename(file.name, name)
      file.name = name
    } catch (error) {
      this.#reportWrite(error, 'Renaming a file failed: the next start repeats its deliveries at once')
    }
    this.#enqueue(file)
  }

  /** Removes a file; a damaged file is kept for inspection. */
  async #drop(file: WaitingFile): Promise<void> {
    if (file.isDamaged) await this.#folder.keepDamaged(file.name)
    else await this.#folder.remove(file.name)
    this.#forget(file)
  }

  /** Forgets a missing file and its waiting entries. */
  #forget(file: WaitingFile): void {
    this.#files.delete(file)
    this.#bytes -= diskBytesOf(file.fields.bytes)
    this.#setWaiting(file, 0)
  }

  #reportWrite(err: unknown, message: string): void {
    this.#options.reports.sparse('error', { event: 'spool.write-failed', err }, message)
  }
}
