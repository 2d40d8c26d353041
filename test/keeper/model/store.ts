/** A key-value store that many virtual processes share, and that fails in the ways that stores do. */
import type { KeyValueStore } from 'notification-subscriber'
import { idsIn, parameterNamesIn, recordIn, type StoredRecord } from './stored-records.js'
import { currentProcess, type VirtualProcess } from './virtual-process.js'
import type { VirtualTime } from './virtual-time.js'

/**
 * - `failing`: every operation rejects; half of the writes are kept all the same
 * - `hanging`: operations take effect, and are answered, when the mode ends
 * - `forgetting`: writes resolve and keep nothing, reads find nothing, as Keyv does without its server
 * - `dropping`: writes resolve and keep nothing, reads find what was there before
 * - `stale`: reads answer what was there when the mode began
 * - `slow`: every operation takes up to 3 s
 */
export type StoreMode = 'working' | 'failing' | 'hanging' | 'forgetting' | 'dropping' | 'stale' | 'slow'

export interface StoreOptions {
  readonly hasCompareAndSet: boolean
  /** Answers at once, like a `Map`, or after a while. */
  readonly isSynchronous: boolean
  readonly random: () => number
  /** Called with every key and value that the store is asked to keep. */
  readonly onText: (key: string, value: string) => void
  /** Called when the store has lost something that it had confirmed. */
  readonly onLoss: () => void
}

interface Entry {
  readonly value: string
  readonly endsAtMs: number
}

interface Write {
  readonly atMs: number
  readonly key: string
  readonly before: Entry | undefined
}

/** The last write of a process to a user's record that the store confirmed. */
export interface ConfirmedWrite {
  readonly text: string
  readonly record: StoredRecord
  /** When the process asked for it. */
  readonly askedMs: number
}

/** A time whose writes were lost, and until when they were there. */
interface Loss {
  readonly fromMs: number
  readonly untilMs: number
  /** All keys without it. */
  readonly key: string | undefined
}

/** What one process knows from the store. */
class Sight {
  /** The oldest first. */
  readonly writes = new Map<string, ConfirmedWrite[]>()
  readonly ids = new Set<number>()
  /** Names of parameters, by user. */
  readonly parameterNames = new Map<string, Set<string>>()
  /** The users of whom it read something before it wrote anything. */
  readonly met = new Map<string, 'read' | 'written'>()
  /** When it wrote or read that a user is removed: it lets go of what it knew. */
  readonly letGoMs = new Map<string, number>()
  isLastAnswerFailure = false
  /** Whether it has announced its configuration, or found it announced: it goes on to the users then. */
  hasAnnounced = false
}

const slowMs = 3_000

export class ModelStore {
  readonly #time: VirtualTime
  readonly #options: StoreOptions
  readonly #entries = new Map<string, Entry>()
  /** What each write replaced, the newest last. */
  readonly #history: Write[] = []
  readonly #waiting: (() => void)[] = []
  readonly #sights = new Map<VirtualProcess, Sight>()
  readonly #cutOff = new Set<VirtualProcess>()
  readonly #broken = new Set<string>()
  readonly #garbage = new Set<string>()
  readonly #losses: Loss[] = []
  readonly #keyOfUser = new Map<string, string>()
  readonly #idsHeld = new Set<number>()
  readonly #removedMs = new Map<string, number>()
  #snapshot: ReadonlyMap<string, Entry> = new Map()
  #mode: StoreMode = 'working'
  #modeSinceMs = 0
  #hasFailed = false

  constructor(time: VirtualTime, options: StoreOptions) {
    this.#time = time
    this.#options = options
  }

  // Faults.

  get mode(): StoreMode {
    return this.#mode
  }

  set mode(mode: StoreMode) {
    const before = this.#mode
    this.#mode = mode
    if (mode === 'stale') this.#snapshot = new Map(this.#entries)
    if (mode !== 'working' && mode !== 'slow') this.#hasFailed = true
    if (before === 'dropping' || before === 'forgetting') this.#lose(this.#modeSinceMs)
    this.#modeSinceMs = this.#time.nowMs
    if (mode !== 'hanging') for (const happen of this.#waiting.splice(0)) happen()
  }

  /** For one process nothing gets through, to the store or back. */
  cutOff(process: VirtualProcess): void {
    this.#cutOff.add(process)
    this.#hasFailed = true
  }

  reconnect(process: VirtualProcess): void {
    this.#cutOff.delete(process)
  }

  /** Loses all that it had. */
  forget(): void {
    this.#entries.clear()
    this.#lose(Number.NEGATIVE_INFINITY)
  }

  /** Loses the record of one user. */
  forgetRecord(username: string): void {
    const key = this.#keyOfUser.get(username)
    if (key === undefined) return
    this.#keep(key, undefined)
    this.#lose(Number.NEGATIVE_INFINITY, key)
  }

  /** Has again what it had some time ago: a replica that lacks the last writes was promoted, or a dump was restored. */
  rewind(byMs: number): void {
    const toMs = this.#time.nowMs - byMs
    while ((this.#history.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) > toMs) {
      const { key, before } = this.#history.pop() as Write
      if (before === undefined) this.#entries.delete(key)
      else this.#entries.set(key, before)
    }
    this.#lose(toMs)
  }

  /** Puts something unreadable under a key, or makes every operation on the key fail. */
  spoil(key: string, text: string | undefined): void {
    this.#hasFailed = true
    if (text === undefined) {
      this.#broken.add(key)
      return
    }
    this.#garbage.add(text)
    this.#keep(key, { value: text, endsAtMs: Number.POSITIVE_INFINITY })
    this.#lose(Number.NEGATIVE_INFINITY, key)
  }

  /** An operator removes what still cannot be read, also if a replica or a dump has brought it back. */
  clean(): void {
    this.#broken.clear()
    for (const key of this.keys) if (this.#garbage.has(this.#present(key) ?? '')) this.#keep(key, undefined)
  }

  get keys(): readonly string[] {
    return [...this.#entries.keys()]
  }

  #lose(fromMs: number, key?: string): void {
    this.#losses.push({ fromMs, untilMs: this.#time.nowMs, key })
    this.#options.onLoss()
  }

  // What rules ask.

  get hasLost(): boolean {
    return this.#losses.length > 0
  }

  /** Whether the record of a user holds a claim. */
  get hasClaims(): boolean {
    return this.usernames().some((username) => this.record(username)?.claim !== undefined)
  }

  hasLostBetween(fromMs: number, toMs: number): boolean {
    return this.#losses.some(({ untilMs }) => untilMs >= fromMs && untilMs <= toMs)
  }

  /** Whether something that was written about a user at a time, or later, may have been lost since. */
  mayHaveLost(username: string, writtenMs: number): boolean {
    if (this.#mode === 'dropping' || this.#mode === 'forgetting') return true
    const key = this.#keyOfUser.get(username)
    return this.#losses.some(
      (loss) => loss.untilMs >= writtenMs && (loss.key === undefined || loss.key === key),
    )
  }

  /** Whether it has lost something, or holds what cannot be read. */
  get isDamaged(): boolean {
    return this.hasLost || this.#broken.size > 0 || this.#isDropping()
  }

  /** Whether a name stands among the members now. */
  hasMember(username: string): boolean {
    // A name in a shard is followed by its standing.
    const name = `${JSON.stringify(username)}:`
    return this.keys.some((key) => key.includes(':members:') && this.#present(key)?.includes(name))
  }

  /** When a process wrote last that nothing of a user exists any more. */
  removedMs(username: string): number | undefined {
    return this.#removedMs.get(username)
  }

  /** What it says of a user now. */
  record(username: string): StoredRecord | undefined {
    const text = this.text(username)
    return text === undefined ? undefined : recordIn(text)
  }

  text(username: string): string | undefined {
    const key = this.#keyOfUser.get(username)
    return key === undefined ? undefined : this.#present(key)
  }

  /** The users of whom it ever held a record. */
  usernames(): string[] {
    return [...this.#keyOfUser.keys()]
  }

  /** Whether it has a record of a user that stays if nobody writes it again. */
  isKeptForGood(username: string): boolean {
    const key = this.#keyOfUser.get(username)
    return key !== undefined && this.#entries.get(key)?.endsAtMs === Number.POSITIVE_INFINITY
  }

  holdsId(id: number): boolean {
    return [...this.#keyOfUser.values()].some((key) => idsIn(this.#present(key) ?? '').includes(id))
  }

  /** The last write of a process to a user's record that was confirmed to it. */
  lastWrite(process: VirtualProcess, username: string): ConfirmedWrite | undefined {
    return this.writes(process, username).at(-1)
  }

  /** All writes of a process to a user's record that were confirmed to it, the oldest first. */
  writes(process: VirtualProcess, username: string): readonly ConfirmedWrite[] {
    return this.#sightOf(process).writes.get(username) ?? []
  }

  /** Whether the last thing that a process heard from the store is that it fails. */
  isFailingFor(process: VirtualProcess): boolean {
    return this.#sightOf(process).isLastAnswerFailure
  }

  /** Whether a process has read an id, or will when its answer arrives. */
  hasShownId(process: VirtualProcess, id: number): boolean {
    return this.#sightOf(process).ids.has(id)
  }

  /** Whether a process has read or written that a user's subscription may have a parameter of this name. */
  hasShownName(process: VirtualProcess, username: string, name: string): boolean {
    return this.#sightOf(process).parameterNames.get(username)?.has(name) === true
  }

  /** Whether a process has announced its configuration, or found it announced. */
  hasAnnounced(process: VirtualProcess): boolean {
    return this.#sightOf(process).hasAnnounced
  }

  /** Whether a process has read a record of a user before it wrote one, or will when its answer arrives. */
  hasShown(process: VirtualProcess, username: string): boolean {
    return this.#sightOf(process).met.get(username) === 'read'
  }

  /** When a process wrote or read last that a user is removed. */
  letGoMs(process: VirtualProcess, username: string): number {
    return this.#sightOf(process).letGoMs.get(username) ?? Number.NEGATIVE_INFINITY
  }

  /** Whether a subscription's id was in the store once, of one that has always worked and kept what it had. */
  hasAlwaysKept(id: number): boolean {
    return !this.#hasFailed && !this.hasLost && this.#idsHeld.has(id)
  }

  /** Whether a subscription's id was never in the store, because that failed. */
  hasMissed(id: number): boolean {
    return this.#hasFailed && !this.#idsHeld.has(id)
  }

  #sightOf(process: VirtualProcess): Sight {
    const known = this.#sights.get(process) ?? new Sight()
    this.#sights.set(process, known)
    return known
  }

  // What a keeper uses.

  /** The store as one process has it. */
  for(process: VirtualProcess): KeyValueStore {
    const sight = this.#sightOf(process)
    const store: KeyValueStore = {
      get: (key) =>
        this.#perform(process, key, () => {
          const value = this.#read(key)
          if (value !== undefined) noteRead(sight, value, this.#time.nowMs)
          return value
        }),
      set: (key, value, ttlMs) =>
        this.#perform(
          process,
          key,
          () => {
            noteWrite(sight, value, this.#time.nowMs)
            return this.#write(key, value, ttlMs)
          },
          this.#confirmation(sight, value),
        ),
      delete: (key) =>
        this.#perform(process, key, () => {
          if (!this.#isDropping()) this.#keep(key, undefined)
          return true
        }),
    }
    if (!this.#options.hasCompareAndSet) return store
    return {
      ...store,
      compareAndSet: (key, expected, value, ttlMs) =>
        this.#perform(
          process,
          key,
          () => {
            noteWrite(sight, value, this.#time.nowMs)
            const present = this.#mode === 'forgetting' ? undefined : this.#present(key)
            return present === expected && this.#write(key, value, ttlMs)
          },
          this.#confirmation(sight, value),
        ),
    }
  }

  /** Notes that a write to a record was confirmed, when the answer arrives. */
  #confirmation(sight: Sight, text: string) {
    const record = recordIn(text)
    const askedMs = this.#time.nowMs
    return (isStored: unknown) => {
      if (record === undefined || isStored !== true) return
      const writes = sight.writes.get(record.username) ?? []
      sight.writes.set(record.username, writes)
      writes.push({ text, record, askedMs })
    }
  }

  #perform<T>(
    process: VirtualProcess,
    key: string,
    effect: () => T,
    onAnswer: (result: T) => void = () => {},
  ): T | Promise<T> {
    if (currentProcess() !== process) throw new Error('A process uses the store of another one.')
    const sight = this.#sightOf(process)
    const fail = (): never => {
      sight.isLastAnswerFailure = !this.#broken.has(key)
      throw new Error('The store fails.')
    }
    const answer = (result: T) => {
      sight.isLastAnswerFailure = false
      sight.hasAnnounced ||= key.includes(':members:')
      onAnswer(result)
      return result
    }
    const isRejecting = () => this.#mode === 'failing' || this.#cutOff.has(process) || this.#broken.has(key)
    if (this.#options.isSynchronous) {
      // A store that answers at once has no way to hang.
      return process.operate<T | Promise<T>>(
        () => (isRejecting() || this.#mode === 'hanging' ? fail() : answer(effect())),
        never,
      )
    }
    return process.operate<Promise<T>>(() => {
      const latencyMs = this.#options.random() * (this.#mode === 'slow' ? slowMs : 8)
      if (isRejecting()) {
        if (this.#mode === 'failing' && this.#options.random() < 0.5) effect()
        return process.after(latencyMs, fail)
      }
      if (this.#mode === 'hanging') {
        return new Promise((resolve) => {
          this.#waiting.push(() => {
            const result = effect()
            process.receive(latencyMs, () => resolve(answer(result)))
          })
        })
      }
      const result = effect()
      return process.after(latencyMs, () => answer(result))
    }, never)
  }

  #isDropping(): boolean {
    return this.#mode === 'dropping' || this.#mode === 'forgetting'
  }

  #read(key: string): string | undefined {
    if (this.#mode === 'forgetting') return undefined
    return this.#mode === 'stale' ? this.#snapshot.get(key)?.value : this.#present(key)
  }

  #write(key: string, value: string, ttlMs: number | undefined): boolean {
    if (typeof value !== 'string' || (ttlMs !== undefined && !(Number.isInteger(ttlMs) && ttlMs > 0))) {
      throw new Error(`The store takes texts and whole milliseconds, not ${typeof value} and ${ttlMs}.`)
    }
    this.#options.onText(key, value)
    const record = recordIn(value)
    if (record !== undefined) this.#keyOfUser.set(record.username, key)
    if (record?.isRemoved) this.#removedMs.set(record.username, this.#time.nowMs)
    if (this.#isDropping()) return true
    for (const id of idsIn(value)) this.#idsHeld.add(id)
    this.#keep(key, {
      value,
      endsAtMs: ttlMs === undefined ? Number.POSITIVE_INFINITY : this.#time.nowMs + ttlMs,
    })
    return true
  }

  #keep(key: string, entry: Entry | undefined): void {
    this.#history.push({ atMs: this.#time.nowMs, key, before: this.#entries.get(key) })
    if (entry === undefined) this.#entries.delete(key)
    else this.#entries.set(key, entry)
  }

  #present(key: string): string | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.endsAtMs > this.#time.nowMs) return entry?.value
    this.#entries.delete(key)
    return undefined
  }
}

function letGo({ letGoMs, met }: Sight, username: string, nowMs: number): void {
  met.delete(username)
  letGoMs.set(username, nowMs)
}

function noteRead(sight: Sight, value: string, nowMs: number): void {
  const record = recordIn(value)
  if (record === undefined) return
  for (const id of idsIn(value)) sight.ids.add(id)
  noteNames(sight, record)
  if (record.isRemoved) letGo(sight, record.username, nowMs)
  else if (!sight.met.has(record.username)) sight.met.set(record.username, 'read')
}

function noteNames({ parameterNames }: Sight, record: StoredRecord): void {
  const names = parameterNames.get(record.username) ?? new Set()
  parameterNames.set(record.username, names)
  for (const name of parameterNamesIn(record)) names.add(name)
}

function noteWrite(sight: Sight, value: string, nowMs: number): void {
  const record = recordIn(value)
  if (record !== undefined) noteNames(sight, record)
  if (record?.isRemoved) letGo(sight, record.username, nowMs)
  else if (record !== undefined && !sight.met.has(record.username)) sight.met.set(record.username, 'written')
}

const never = new Promise<never>(() => {})
