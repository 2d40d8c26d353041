/** Remembers the last 1,000 of one kind, requests or callbacks, from their beginning to their outcome. */

/** What every entry of `emulator.requests` and `emulator.callbacks` has, besides what it is about. */
export interface RecordedEntry {
  /** Counts from 1; entries with lower ids than the first one that is left have been forgotten. */
  readonly id: number
  /** When the request arrived or the callback was sent, in milliseconds since 1970. */
  readonly startedAt: number
  /** Status of the answer, if there was one. */
  readonly status?: number
  /** Why there was no answer, or why a callback failed, as a sentence. */
  readonly error?: string
  /** How long it took until then, in milliseconds; missing as long as the answer is outstanding. */
  readonly durationMs?: number
}

/** How a request or a callback ended. */
export type Outcome = Pick<RecordedEntry, 'status' | 'error'>

const rememberedEntries = 1_000
const rememberedCharacters = 16 * 1024

export class History<About extends object> {
  readonly #entries: (About & RecordedEntry)[] = []
  readonly #tell: (entry: About & RecordedEntry) => void
  #lastId = 0

  /** `tell` is called with each entry twice: when its request or callback begins, and when that is over. */
  constructor(tell: (entry: About & RecordedEntry) => void) {
    this.#tell = tell
  }

  /** Adds an entry; the returned function is to be called with the outcome. */
  begin(about: About): (outcome: Outcome) => void {
    this.#lastId++
    const id = this.#lastId
    const begun = { ...about, id, startedAt: Date.now() }
    const startedMs = performance.now()
    this.#entries.push(begun)
    if (this.#entries.length > rememberedEntries) this.#entries.shift()
    this.#tell(begun)
    return (outcome) => {
      const over = { ...begun, ...outcome, durationMs: Math.round(performance.now() - startedMs) }
      const index = id - (this.#entries[0]?.id ?? 0)
      if (index >= 0) this.#entries[index] = over
      this.#tell(over)
    }
  }

  /** The last 1,000, the newest last; copies, which do not change any more. */
  list(): (About & RecordedEntry)[] {
    return this.#entries.map((entry) => ({ ...entry }))
  }
}

/** A body as an entry has it: its beginning, and the length of the whole. */
export function beginningOf(body: string): { body: string; bodyLength: number } {
  return { body: body.slice(0, rememberedCharacters), bodyLength: body.length }
}
