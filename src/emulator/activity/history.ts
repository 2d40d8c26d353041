/** Remembers the last 1,000 of one kind, requests or callbacks, from their beginning to their outcome. */

/** What stands in each entry of a history besides what it is about. */
export interface Recorded {
  /** Counts from 1; entries with lower ids than the first one that is left have been forgotten. */
  readonly id: number
  /** When it began, in milliseconds since 1970. */
  readonly startedAt: number
  /** Status of the answer, if there was one. */
  readonly status?: number
  /** Why it failed, as a sentence. */
  readonly error?: string
  /** How long it took; missing as long as it is not over. */
  readonly durationMs?: number
}

/** How it ended. */
export type Outcome = Pick<Recorded, 'status' | 'error'>

const rememberedEntries = 1_000
const rememberedCharacters = 16 * 1024

export class History<About extends object> {
  readonly #entries: (About & Recorded)[] = []
  readonly #tell: (entry: About & Recorded) => void
  #lastId = 0

  /** `tell` is called with each entry twice: when it begins, and when it is over. */
  constructor(tell: (entry: About & Recorded) => void) {
    this.#tell = tell
  }

  /** The function that it returns is to be called when it is over. */
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
  list(): (About & Recorded)[] {
    return this.#entries.map((entry) => ({ ...entry }))
  }
}

/** A body as an entry has it: its beginning, and the length of the whole. */
export function beginningOf(body: string): { body: string; bodyLength: number } {
  return { body: body.slice(0, rememberedCharacters), bodyLength: body.length }
}
