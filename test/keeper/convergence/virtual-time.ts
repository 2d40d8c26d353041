/** Time that the tests let pass: events happen in the order of their times, and no real time passes. */

const realSetImmediate = setImmediate
/** Only code that never waits does so much in one moment. */
const mostStepsInOneMoment = 100_000

interface Event {
  readonly at: number
  readonly order: number
  /** Returns `false` if no code has to run because of the event. */
  readonly run: () => unknown
}

export class VirtualTime {
  /** The true time, in milliseconds since the world began. */
  nowMs = 0
  #order = 0
  readonly #events: Event[] = []
  #steps = 0
  #endless: Error | undefined

  /** @param run - returns `false` if no code has to run because of it */
  schedule(delayMs: number, run: () => unknown): void {
    this.#push({ at: this.nowMs + delayMs, order: this.#order++, run })
  }

  /** Lets time pass. After each event all code runs until it waits. @throws if code never waits */
  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms
    await new Promise((resolve) => realSetImmediate(resolve))
    await this.#untilAllWait()
    for (;;) {
      const event = this.#events[0]
      if (event === undefined || event.at > end) break
      this.#pop()
      if (event.at > this.nowMs) this.#steps = 0
      this.nowMs = event.at
      this.step()
      if (event.run() !== false) await this.#untilAllWait()
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

  /** All microtasks have run before the next tick: a tenth of the time that a turn of the event loop takes. */
  async #untilAllWait(): Promise<void> {
    await new Promise<void>((resolve) => process.nextTick(resolve))
    if (this.#endless !== undefined) throw this.#endless
  }

  /** A binary heap, because some sequences hold thousands of timers. */
  #push(event: Event): void {
    const events = this.#events
    let index = events.push(event) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = events[parent] as Event
      if (isBefore(above, event)) break
      events[index] = above
      index = parent
    }
    events[index] = event
  }

  #pop(): void {
    const events = this.#events
    const last = events.pop() as Event
    if (events.length === 0) return
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= events.length) break
      if (child + 1 < events.length && isBefore(events[child + 1] as Event, events[child] as Event)) child++
      if (isBefore(last, events[child] as Event)) break
      events[index] = events[child] as Event
      index = child
    }
    events[index] = last
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
