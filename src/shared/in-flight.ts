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

  /** Resolves as soon as nothing is in flight. */
  async whenIdle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
