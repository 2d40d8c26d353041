/** A key-value store that many virtual processes share, and that fails in the ways that stores do. */
import type { KeyValueStore } from 'notification-subscriber'
import { currentProcess, type VirtualProcess, type VirtualTime } from './virtual-process.js'

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
  readonly order: number
}

export class ModelStore {
  readonly #time: VirtualTime
  readonly #options: StoreOptions
  readonly #entries = new Map<string, Entry>()
  readonly #waiting: (() => void)[] = []
  readonly #read = new Map<VirtualProcess, Map<string, Read>>()
  #snapshot: ReadonlyMap<string, Entry> = new Map()
  #mode: StoreMode = 'working'
  #order = 0
  #hasFailed = false
  readonly #idsHeld = new Set<number>()

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

  /** Loses all it had. */
  forget(): void {
    this.#entries.clear()
  }

  /** Whether a subscription's id was never in the store, because that failed. */
  hasMissed(id: number): boolean {
    return this.#hasFailed && !this.#idsHeld.has(id)
  }

  /** How many operations there were: tells what came first. */
  get order(): number {
    return this.#order
  }

  /** Whether a process has since seen that the store holds something about a user. */
  hasReadBack(process: VirtualProcess, username: string, sinceOrder: number): boolean {
    const mentions = JSON.stringify(username)
    for (const { value, order } of this.#read.get(process)?.values() ?? []) {
      if (order > sinceOrder && value.includes(mentions)) return true
    }
    return false
  }

  /** The store as one process has it. */
  for(process: VirtualProcess): KeyValueStore {
    const perform = <T>(effect: () => T, lost: T) => this.#perform(process, effect, lost)
    const store: KeyValueStore = {
      get: (key) => perform(() => this.#get(process, key), undefined),
      set: (key, value, ttlMs) => perform(() => this.#set(process, key, value, ttlMs), true),
      delete: (key) => perform(() => this.#delete(key), true),
    }
    if (!this.#options.hasCompareAndSet) return store
    return {
      ...store,
      compareAndSet: (key, expected, value, ttlMs) =>
        perform(() => {
          if (this.#mode === 'swallowing') return false
          if (this.#present(key) !== expected) return false
          this.#set(process, key, value, ttlMs)
          return true
        }, false),
    }
  }

  #perform<T>(process: VirtualProcess, effect: () => T, lost: T): T | Promise<T> {
    if (currentProcess() !== process) throw new Error('A process uses the store of another one.')
    this.#order++
    if (this.#options.isSynchronous) {
      return process.operate(() => {
        if (this.#mode !== 'failing' && this.#mode !== 'hanging') return effect()
        throw new Error('The store fails.')
      }, lost)
    }
    return process.operate<Promise<T>>(() => {
      const latencyMs = this.#options.random() * 8
      switch (this.#mode) {
        case 'failing': {
          if (this.#options.random() < 0.5) effect()
          return process.after(latencyMs, () => {
            throw new Error('The store fails.')
          })
        }
        case 'hanging':
          return new Promise((resolve) => {
            this.#waiting.push(() => {
              const result = effect()
              process.receive(latencyMs, () => resolve(result))
            })
          })
        default: {
          const result = effect()
          return process.after(latencyMs, () => result)
        }
      }
    }, never)
  }

  #get(process: VirtualProcess, key: string): string | undefined {
    if (this.#mode === 'swallowing') return undefined
    const value = this.#mode === 'stale' ? this.#snapshot.get(key)?.value : this.#present(key)
    if (value !== undefined && value === this.#present(key)) {
      const read = this.#read.get(process) ?? new Map<string, Read>()
      this.#read.set(process, read.set(key, { value, order: this.#order }))
    }
    return value
  }

  #set(_process: VirtualProcess, key: string, value: string, ttlMs: number | undefined): boolean {
    if (typeof value !== 'string' || (ttlMs !== undefined && !(Number.isInteger(ttlMs) && ttlMs > 0))) {
      throw new Error(`The store takes texts and whole milliseconds, not ${typeof value} and ${ttlMs}.`)
    }
    this.#options.onText(`${key}: ${value}`)
    if (this.#mode === 'swallowing') return true
    for (const [, id] of value.matchAll(/"i":(\d+)/g)) this.#idsHeld.add(Number(id))
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
