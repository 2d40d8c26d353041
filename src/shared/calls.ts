/** Shares calls, and counts work in flight. */

/** Makes a function whose calls at the same time share one run of `work`. */
export function singleFlight<Args extends unknown[], Result>(
  work: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  let running: Promise<Result> | undefined
  return (...args) => {
    running ??= work(...args).finally(() => {
      running = undefined
    })
    return running
  }
}

/** Counts what is in flight: the calls of a client, the deliveries of a receiver, the writes of a spool. */
export class InFlight {
  #count = 0
  readonly #waiting: (() => void)[] = []

  get count(): number {
    return this.#count
  }

  begin(): void {
    this.#count += 1
  }

  end(): void {
    this.#count -= 1
    if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Resolves as soon as nothing is in flight, perhaps now. */
  async whenIdle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
