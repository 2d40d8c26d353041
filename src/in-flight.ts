/** Counts what is under way, calls or deliveries, for a clean shutdown. */
export class InFlight {
  #count = 0
  #waiting: (() => void)[] = []

  begin(): void {
    this.#count += 1
  }

  end(): void {
    this.#count -= 1
    if (this.#count > 0 || this.#waiting.length === 0) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Resolves when none is left. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#count === 0) resolve()
      else this.#waiting.push(resolve)
    })
  }
}
