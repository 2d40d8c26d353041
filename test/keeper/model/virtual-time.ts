/** The time of a world that the tests let pass: everything that is due happens, one event after the other. */

const realSetImmediate = setImmediate
/** So much happens in one moment only to code that would go on for ever. */
const mostStepsInOneMoment = 100_000

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => unknown
}

/** The true time of a world, in milliseconds since it began, and what is to happen in it. */
export class VirtualTime {
  nowMs = 0
  #order = 0
  readonly #events: Event[] = []
  #steps = 0
  #endless: Error | undefined

  /** @param run - returns `false` if no code has to go on because of it */
  schedule(delayMs: number, run: () => unknown): void {
    this.#push({ at: this.nowMs + delayMs, order: this.#order++, run })
  }

  /**
   * Everything that is due happens, one event after the other; between two, all code runs until it waits.
   *
   * @throws if code never waits
   */
  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms
    await untilEventLoopTurns()
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

  /** Counts what happens while time stands still. @throws if that does not end */
  step(): void {
    this.#steps++
    if (this.#steps <= mostStepsInOneMoment) return
    const at = `${(this.nowMs / 1_000).toFixed(3)} s`
    this.#endless ??= new Error(
      `An endless loop: ${mostStepsInOneMoment} steps at ${at}, and no time passes.`,
    )
    throw this.#endless
  }

  async #untilAllWait(): Promise<void> {
    await untilAllWait()
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

/** All microtasks have run before the next tick comes: a tenth of the time that a turn of the event loop takes. */
function untilAllWait(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}

/** Whoever runs the tests has something to do now and then. */
function untilEventLoopTurns(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve))
}
