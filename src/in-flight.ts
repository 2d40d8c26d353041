/** Counts what is under way: calls, deliveries, or the handlers of one. */
export class InFlight {
  #count = 0
  #waiting: (() => void)[] = []

  begin(): void {
    this.#count += 1
  }

  end(): void {
    this.#count -= 1
    this.#tell()
  }

  /** Calls a function when none is left, at once if none is. */
  whenOver(onOver: () => void): void {
    this.#waiting.push(onOver)
    this.#tell()
  }

  /** Resolves when none is left: for a clean shutdown. */
  drained(): Promise<void> {
    return new Promise((resolve) => this.whenOver(resolve))
  }

  #tell(): void {
    while (this.#count === 0 && this.#waiting.length > 0) this.#waiting.shift()?.()
  }
}
