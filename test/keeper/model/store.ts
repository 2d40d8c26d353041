/** A key-value store that many virtual processes share, and that fails in the ways that stores do. */
import type { KeyValueStore } from 'notification-subscriber'
import { idsIn, isLeftOver, recordIn, removedIn, type StoredRecord, usernamesIn } from './stored-records.js'
import { currentProcess, type VirtualProcess } from './virtual-process.js'
import type { VirtualTime } from './virtual-time.js'

/**
 * - `failing`: every operation rejects; half of the writes were kept all the same
 * - `hanging`: operations take effect, and are answered, when the mode is over
 * - `swallowing`: writes resolve and keep nothing, reads find nothing, as Keyv does without its server
 * - `stale`: reads answer what was there when the mode began
 */
export type StoreMode = 'working' | 'failing' | 'hanging' | 'swallowing' | 'stale'

export interface StoreOptions {
  readonly hasCompareAndSet: boolean
  /** Answers at once, like a `Map`, or after a while. */
  readonly isSynchronous: boolean
  readonly random: () => number
  /** Shown every key and value that it is asked to keep. */
  readonly onText: (text: string) => void
}

interface Entry {
  readonly value: string
  readonly endsAtMs: number
}

/** What a process has seen to be in the store. */
interface Read {
  readonly value: string
  /** When that was, counted in operations. */
  readonly order: number
  /** When it learnt of it, counted in answers. */
  readonly answer: number
}

export class ModelStore {
  readonly #time: VirtualTime
  readonly #options: StoreOptions
  readonly #entries = new Map<string, Entry>()
  readonly #waiting: (() => void)[] = []
  readonly #read = new Map<VirtualProcess, Map<string, Read>>()
  #snapshot: ReadonlyMap<string, Entry> = new Map()
  #mode: StoreMode = 'working'
  readonly #cutOff = new Set<VirtualProcess>()
  #order = 0
  #answers = 0
  /** The last answer of each process that was a failure. */
  readonly #failures = new Map<VirtualProcess, number>()
  #hasFailed = false
  readonly #idsHeld = new Set<number>()
  /** The users of whom each process has read, or written, something. */
  readonly #met = new Map<VirtualProcess, Map<string, 'read' | 'written'>>()
  readonly #idsRead = new Map<VirtualProcess, Set<number>>()
  readonly #removedRead = new Map<VirtualProcess, Set<string>>()
  #hasForgotten = false

  constructor(time: VirtualTime, options: StoreOptions) {
    this.#time = time
    this.#options = options
  }

  get mode(): StoreMode {
    return this.#mode
  }

  set mode(mode: StoreMode) {
    this.#mode = mode
    if (mode !== 'working') this.#hasFailed = true
    if (mode === 'stale') this.#snapshot = new Map(this.#entries)
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

  isCutOff(process: VirtualProcess): boolean {
    return this.#cutOff.has(process)
  }

  /** Loses all it had. */
  forget(): void {
    this.#entries.clear()
    this.#hasForgotten = true
  }

  get hasForgotten(): boolean {
    return this.#hasForgotten
  }

  /** Whether it holds a record of a user that a process finds: one in a chunk without a head is none. */
  holds(username: string): boolean {
    const keys = [...this.#entries.keys()]
    const texts = keys.map((key) => this.#present(key) ?? '')
    return (
      keys.some((key) => key.endsWith(':head')) && texts.some((text) => usernamesIn(text).includes(username))
    )
  }

  /** Whether it says that a user may have a subscription whose id it does not know. */
  holdsDoubt(username: string): boolean {
    const texts = [...this.#entries.keys()].map((key) => this.#present(key) ?? '')
    return texts.some(
      (text) =>
        isLeftOver(text, username) || recordIn(text, username)?.s.some(({ doubt }) => doubt === 1) === true,
    )
  }

  /** Whether an id stands in it. */
  holdsId(id: number): boolean {
    return [...this.#entries.keys()].some((key) => idsIn(this.#present(key) ?? '').includes(id))
  }

  /** Whether a process has read an id, or will when its answer arrives. */
  hasShownId(process: VirtualProcess, id: number): boolean {
    return this.#idsRead.get(process)?.has(id) === true
  }

  /** Whether a process has read a record of a user before it wrote one, or will when its answer arrives. */
  hasShown(process: VirtualProcess, username: string): boolean {
    return this.#met.get(process)?.get(username) === 'read'
  }

  /** Whether a process has read that a user is to be removed. */
  hasShownRemoved(process: VirtualProcess, username: string): boolean {
    return this.#removedRead.get(process)?.has(username) === true
  }

  /** Whether a subscription's id was in the store once, of one that has always worked and kept what it had. */
  hasAlwaysKept(id: number): boolean {
    return !this.#hasFailed && !this.#hasForgotten && this.#idsHeld.has(id)
  }

  /** Whether a subscription's id was never in the store, because that failed. */
  hasMissed(id: number): boolean {
    return this.#hasFailed && !this.#idsHeld.has(id)
  }

  /** How many operations there were: tells what came first. */
  get order(): number {
    return this.#order
  }

  /** What a process has since seen to be in the store about a user. */
  readBack(process: VirtualProcess, username: string, sinceOrder: number): StoredRecord | undefined {
    const read = this.#lastRead(process, username)
    return read !== undefined && read.order > sinceOrder ? recordIn(read.value, username) : undefined
  }

  /** Whether an operation of a process has failed since it saw what is stored about a user. */
  hasFailedSince(process: VirtualProcess, username: string): boolean {
    const read = this.#lastRead(process, username)
    return (this.#failures.get(process) ?? 0) > (read?.answer ?? 0)
  }

  #lastRead(process: VirtualProcess, username: string): Read | undefined {
    const all = [...(this.#read.get(process)?.values() ?? [])]
    return all
      .filter(({ value }) => recordIn(value, username) !== undefined)
      .sort((a, b) => b.order - a.order)[0]
  }

  /** The store as one process has it. */
  for(process: VirtualProcess): KeyValueStore {
    const perform = <T>(effect: () => T, lost: T, onAnswer?: (result: T) => void) =>
      this.#perform(process, effect, lost, onAnswer)
    const store: KeyValueStore = {
      get: (key) => {
        let order = 0
        const effect = () => {
          const value = this.#get(key)
          this.#meet(process, value, 'read')
          const removedRead = this.#removedRead.get(process) ?? new Set()
          this.#removedRead.set(process, removedRead)
          for (const username of removedIn(value ?? '')) removedRead.add(username)
          const idsRead = this.#idsRead.get(process) ?? new Set()
          this.#idsRead.set(process, idsRead)
          for (const id of idsIn(value ?? '')) idsRead.add(id)
          // A store that lies shows nothing of what it holds.
          if (value === this.#present(key)) order = this.#order
          return value
        }
        return perform<string | undefined>(effect, undefined, (value) => {
          if (value !== undefined && order > 0) this.#note(process, key, value, order)
        })
      },
      set: (key, value, ttlMs) =>
        perform(() => {
          this.#meet(process, value, 'written')
          return this.#set(key, value, ttlMs)
        }, true),
      delete: (key) => perform(() => this.#delete(key), true),
    }
    if (!this.#options.hasCompareAndSet) return store
    return {
      ...store,
      compareAndSet: (key, expected, value, ttlMs) =>
        perform(() => {
          this.#meet(process, value, 'written')
          if (this.#mode === 'swallowing') return false
          if (this.#present(key) !== expected) return false
          this.#set(key, value, ttlMs)
          return true
        }, false),
    }
  }

  #perform<T>(
    process: VirtualProcess,
    effect: () => T,
    lost: T,
    onAnswer: (result: T) => void = () => {},
  ): T | Promise<T> {
    if (currentProcess() !== process) throw new Error('A process uses the store of another one.')
    this.#order++
    const fail = (): never => {
      this.#failures.set(process, ++this.#answers)
      throw new Error('The store fails.')
    }
    const answer = (result: T) => {
      this.#answers++
      onAnswer(result)
      return result
    }
    if (this.#options.isSynchronous) {
      return process.operate(() => {
        if (this.#mode === 'failing' || this.#mode === 'hanging' || this.isCutOff(process)) return fail()
        return answer(effect())
      }, lost)
    }
    return process.operate<Promise<T>>(() => {
      const latencyMs = this.#options.random() * 8
      if (this.isCutOff(process)) return process.after(latencyMs, fail)
      switch (this.#mode) {
        case 'failing': {
          if (this.#options.random() < 0.5) effect()
          return process.after(latencyMs, fail)
        }
        case 'hanging':
          return new Promise((resolve) => {
            this.#waiting.push(() => {
              const result = effect()
              process.receive(latencyMs, () => resolve(answer(result)))
            })
          })
        default: {
          const result = effect()
          return process.after(latencyMs, () => answer(result))
        }
      }
    }, never)
  }

  #meet(process: VirtualProcess, value: string | undefined, how: 'read' | 'written'): void {
    const met = this.#met.get(process) ?? new Map<string, 'read' | 'written'>()
    this.#met.set(process, met)
    for (const username of usernamesIn(value ?? '')) if (!met.has(username)) met.set(username, how)
  }

  /** Now the process knows what it has read. */
  #note(process: VirtualProcess, key: string, value: string, order: number): void {
    const read = this.#read.get(process) ?? new Map<string, Read>()
    this.#read.set(process, read.set(key, { value, order, answer: this.#answers }))
  }

  #get(key: string): string | undefined {
    if (this.#mode === 'swallowing') return undefined
    return this.#mode === 'stale' ? this.#snapshot.get(key)?.value : this.#present(key)
  }

  #set(key: string, value: string, ttlMs: number | undefined): boolean {
    if (typeof value !== 'string' || (ttlMs !== undefined && !(Number.isInteger(ttlMs) && ttlMs > 0))) {
      throw new Error(`The store takes texts and whole milliseconds, not ${typeof value} and ${ttlMs}.`)
    }
    this.#options.onText(`${key}: ${value}`)
    if (this.#mode === 'swallowing') return true
    for (const id of idsIn(value)) this.#idsHeld.add(id)
    this.#entries.set(key, { value, endsAtMs: ttlMs === undefined ? Infinity : this.#time.nowMs + ttlMs })
    return true
  }

  #delete(key: string): boolean {
    return this.#mode === 'swallowing' || this.#entries.delete(key)
  }

  #present(key: string): string | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.endsAtMs > this.#time.nowMs) return entry?.value
    this.#entries.delete(key)
    return undefined
  }
}

const never = new Promise<never>(() => {})
