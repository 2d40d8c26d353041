/** A key-value store that virtual processes share, and that fails in the ways that stores do. */
import type { KeyValueStore } from 'notification-subscriber'
import type { VirtualProcess } from './virtual-process.js'
import type { VirtualTime } from './virtual-time.js'

/**
 * - `failing`: every operation rejects; half of the writes are kept all the same
 * - `hanging`: operations take effect, and are answered, when the mode ends
 * - `forgetting`: writes resolve and keep nothing, reads find nothing, as Keyv does without its server
 * - `slow`: every operation takes up to 3 s
 * - `denied`: only `compareAndSet` fails, as on a Redis without scripts
 */
export type StoreMode = 'working' | 'failing' | 'hanging' | 'forgetting' | 'slow' | 'denied'

export interface StoreOptions {
  readonly hasCompareAndSet: boolean
  /** Answers at once, like a `Map`, or after a while. */
  readonly isSynchronous: boolean
  readonly random: () => number
  /** Called with every text that the store is asked to keep. */
  readonly onText: (key: string, text: string) => void
}

export class ModelStore {
  readonly #entries = new Map<string, string>()
  /** What each write replaced, the newest last. */
  readonly #history: { readonly atMs: number; readonly key: string; readonly before: string | undefined }[] =
    []
  /** Operations of a store that hangs. */
  readonly #waiting: (() => void)[] = []
  readonly #cutOff = new Set<VirtualProcess>()
  readonly #brokenKeys = new Set<string>()
  /** When it lost writes that it had confirmed: a text, or many. */
  readonly #losses: { readonly atMs: number; readonly text: string | undefined }[] = []
  #faultsEndedMs = Number.NEGATIVE_INFINITY
  #mode: StoreMode = 'working'

  constructor(
    private readonly time: VirtualTime,
    private readonly options: StoreOptions,
  ) {}

  // Faults.

  get mode(): StoreMode {
    return this.#mode
  }

  set mode(mode: StoreMode) {
    if (this.#mode === 'forgetting') this.#noteLoss()
    this.#noteFault()
    this.#mode = mode
    if (mode !== 'hanging') for (const happen of this.#waiting.splice(0)) happen()
  }

  cutOff(process: VirtualProcess): void {
    this.#cutOff.add(process)
  }

  reconnect(process: VirtualProcess): void {
    if (this.#cutOff.delete(process)) this.#noteFault()
  }

  forget(): void {
    this.#entries.clear()
    this.#noteLoss()
  }

  /** Holds again what it held some time ago: a replica without the last writes was promoted, or a dump was restored. */
  rollBack(byMs: number): void {
    const toMs = this.time.nowMs - byMs
    for (
      let last = this.#history.at(-1);
      last !== undefined && last.atMs > toMs;
      last = this.#history.at(-1)
    ) {
      this.#history.pop()
      if (last.before === undefined) this.#entries.delete(last.key)
      else this.#entries.set(last.key, last.before)
    }
    this.#noteLoss()
  }

  /** Something that was not written by a keeper of this release; `undefined`: nothing. */
  replace(key: string, text: string | undefined): void {
    this.#noteLoss(this.#entries.get(key) ?? '')
    this.#keep(key, text)
  }

  breakKey(key: string): void {
    this.#brokenKeys.add(key)
  }

  repairKeys(): void {
    if (this.#brokenKeys.size > 0) this.#noteFault()
    this.#brokenKeys.clear()
  }

  #noteLoss(text?: string): void {
    this.#losses.push({ atMs: this.time.nowMs, text })
    this.#noteFault()
  }

  #noteFault(): void {
    this.#faultsEndedMs = this.time.nowMs
  }

  // What rules ask.

  get keys(): readonly string[] {
    return [...this.#entries.keys()]
  }

  text(key: string): string | undefined {
    return this.#entries.get(key)
  }

  /** Whether it has worked for all processes since a time, slowly perhaps. */
  hasWorkedSince(ms: number): boolean {
    const isFaulty =
      !['working', 'slow'].includes(this.#mode) || this.#cutOff.size > 0 || this.#brokenKeys.size > 0
    return !isFaulty && this.#faultsEndedMs < ms
  }

  /** Whether something was lost between two times that concerned a user. Default: any user, and until now. */
  hasLost({ username = '', fromMs = 0, toMs = Number.POSITIVE_INFINITY } = {}): boolean {
    return this.#losses.some(
      ({ atMs, text }) => atMs >= fromMs && atMs <= toMs && (text === undefined || text.includes(username)),
    )
  }

  // What a keeper uses.

  /** The store as one process has it. */
  for(process: VirtualProcess): KeyValueStore {
    const perform = <T>(key: string, effect: () => T) => this.#perform(process, key, effect)
    const store: KeyValueStore = {
      get: (key) => perform(key, () => this.#present(key)),
      set: (key, text, ttlMs) => perform(key, () => this.#write(key, text, ttlMs)),
      delete: (key) => perform(key, () => this.#keep(key, undefined)),
    }
    if (!this.options.hasCompareAndSet) return store
    return {
      ...store,
      compareAndSet: (key, expected, text, ttlMs) =>
        perform(key, () => {
          if (this.#mode === 'denied' && expected !== undefined) throw new Error('NOPERM')
          return this.#present(key) === expected && this.#write(key, text, ttlMs)
        }),
    }
  }

  #perform<T>(process: VirtualProcess, key: string, effect: () => T): T | Promise<T> {
    const { isSynchronous, random } = this.options
    const isRejecting = this.#mode === 'failing' || this.#cutOff.has(process) || this.#brokenKeys.has(key)
    const fail = (): never => {
      throw new Error('The store fails.')
    }
    return process.operate<T | Promise<T>>(() => {
      // What answers at once has no way to hang.
      if (isSynchronous) return isRejecting || this.#mode === 'hanging' ? fail() : effect()
      const latencyMs = random() * (this.#mode === 'slow' ? 3_000 : 8)
      if (isRejecting) {
        if (this.#mode === 'failing' && random() < 0.5) effect()
        return process.after(latencyMs, fail)
      }
      if (this.#mode === 'hanging') {
        return new Promise((resolve) => {
          this.#waiting.push(() => {
            const result = effect()
            process.receive(latencyMs, () => resolve(result))
          })
        })
      }
      const result = effect()
      return process.after(latencyMs, () => result)
    })
  }

  #present(key: string): string | undefined {
    return this.#mode === 'forgetting' ? undefined : this.#entries.get(key)
  }

  #write(key: string, text: string, ttlMs: number | undefined): boolean {
    if (typeof text !== 'string' || (ttlMs !== undefined && !(Number.isInteger(ttlMs) && ttlMs > 0)))
      throw new Error(`The store keeps texts for whole milliseconds, not ${typeof text} for ${ttlMs}.`)
    this.options.onText(key, text)
    if (this.#mode !== 'forgetting') this.#keep(key, text)
    return true
  }

  #keep(key: string, text: string | undefined): void {
    this.#history.push({ atMs: this.time.nowMs, key, before: this.#entries.get(key) })
    if (text === undefined) this.#entries.delete(key)
    else this.#entries.set(key, text)
  }
}
