/** Time that the tests let pass: events happen in the order of their times, and no real time passes. */

const realSetImmediate = setImmediate
/** Only code that never waits does so much in one moment. */
const mostStepsInOneMoment = 100_000

interface Event {
  readonly atMs: number
  readonly run: () => unknown
}

export class VirtualTime {
  /** The true time, in milliseconds since the world began. */
  nowMs = 0
  /** The next one last. */
  readonly #events: Event[] = []
  #steps = 0
  #endless: Error | undefined

  /** @param run - returns `false` if no code has to run because of it */
  schedule(delayMs: number, run: () => unknown): void {
    const events = this.#events
    const atMs = this.nowMs + delayMs
    // Before those that are earlier, or as early and scheduled before.
    let [low, high] = [0, events.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((events[middle]?.atMs ?? 0) > atMs) low = middle + 1
      else high = middle
    }
    events.splice(low, 0, { atMs, run })
  }

  /** Lets time pass. After each event all code runs until it waits. @throws if code never waits */
  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms
    await new Promise((resolve) => realSetImmediate(resolve))
    for (;;) {
      if (this.#endless !== undefined) throw this.#endless
      const event = this.#events.at(-1)
      if (event === undefined || event.atMs > end) break
      this.#events.pop()
      if (event.atMs > this.nowMs) this.#steps = 0
      this.nowMs = event.atMs
      this.step()
      // All microtasks have run before the next tick: a tenth of the time that a turn of the event loop takes.
      if (event.run() !== false) await new Promise<void>((resolve) => process.nextTick(resolve))
    }
    this.nowMs = end
    this.#steps = 0
  }

  /** Counts what happens while no time passes. @throws if that does not end */
  step(): void {
    if (++this.#steps <= mostStepsInOneMoment) return
    this.#endless ??= new Error(`Endless loop: ${mostStepsInOneMoment} steps at ${this.nowMs} ms.`)
    throw this.#endless
  }
}
