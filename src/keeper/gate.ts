/** What every request of the keeper passes: no more in flight, and no more a second, than are allowed; and no outage. */
import type { Circuit } from './circuit.js'
import { RateLimit } from './rate-limit.js'
import { delay } from './timing.js'

export class Gate {
  readonly #circuit: Circuit
  readonly #limit: RateLimit
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(circuit: Circuit, options: { maxRequestsPerSecond: number; concurrency: number }) {
    this.#circuit = circuit
    this.#limit = new RateLimit(options.maxRequestsPerSecond)
    this.#free = options.concurrency
  }

  /**
   * Waits until a request may be sent.
   *
   * @returns false in an outage: then nothing must be sent; true must be followed by {@link Gate.leave}
   */
  async enter(username: string): Promise<boolean> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    for (;;) {
      const now = performance.now()
      const waitMs = this.#limit.waitMs(now)
      if (waitMs === 0) {
        if (this.#circuit.claim(username, now)) {
          this.#limit.spend(now)
          return true
        }
        this.#leave()
        return false
      }
      await delay(Math.ceil(waitMs))
    }
  }

  /** The request is over, or was not sent: then another one may test the water. */
  leave(username: string): void {
    this.#circuit.giveBack(username)
    this.#leave()
  }

  #leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free++
    else next()
  }
}
