/** Time limits that cost nothing where they are met at once. */

const soon = Promise.resolve()

/**
 * Calls `onLate` after `limitMs`, unless the function that it returns is called before. There is no timer for
 * what is over with the microtasks of this turn, which most deliveries are.
 */
export function startDeadline(limitMs: number, onLate: () => void): () => void {
  let isMet = false
  let timer: ReturnType<typeof setTimeout> | undefined
  void soon.then(() => {
    if (!isMet) timer = setTimeout(onLate, limitMs)
  })
  return () => {
    isMet = true
    clearTimeout(timer)
  }
}

/** One limit for many things at the same time, with one timer for all of them. */
export class SharedDeadline {
  readonly #periodMs: number
  #recent = new Set<() => void>()
  #older = new Set<() => void>()
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @param limitMs - the longest time until `onLate` is called; the shortest is half of it */
  constructor(limitMs: number) {
    this.#periodMs = limitMs / 2
  }

  /** Calls `onLate` when the time is over, unless it is stopped before. */
  start(onLate: () => void): void {
    this.#recent.add(onLate)
    if (this.#timer === undefined) this.#startPeriod()
  }

  stop(onLate: () => void): void {
    if (!this.#recent.delete(onLate)) this.#older.delete(onLate)
  }

  #startPeriod(): void {
    this.#timer = setTimeout(() => this.#endPeriod(), this.#periodMs)
    // What is waited for keeps the process running; the timer alone must not.
    this.#timer.unref?.()
  }

  #endPeriod(): void {
    const late = this.#older
    this.#older = this.#recent
    this.#recent = new Set()
    this.#timer = undefined
    if (this.#older.size > 0) this.#startPeriod()
    for (const onLate of late) onLate()
  }
}
