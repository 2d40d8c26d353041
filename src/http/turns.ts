/** Lets a limited number of requests through at once, first come, first served. */
import type { Deadline } from './deadline.js'

/**
 * The connections of a client. A request that finds none free waits here, not inside undici, where its headers would already
 * be fixed: a token can expire during such a wait.
 */
export class Turns {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(limit: number) {
    this.#free = limit
  }

  /** Runs `work` as soon as it is its turn, and says whether it had to wait. @throws the deadline's reason */
  async run<Result>(deadline: Deadline, work: (hasWaited: boolean) => Promise<Result>): Promise<Result> {
    const hasWaited = this.#free === 0
    if (hasWaited) await this.#turn(deadline)
    else this.#free -= 1
    try {
      return await work(hasWaited)
    } finally {
      this.#pass()
    }
  }

  #turn(deadline: Deadline): Promise<void> {
    let enter = () => {}
    const turn = new Promise<void>((resolve) => {
      enter = resolve
    })
    this.#waiting.add(enter)
    // After an abort in the very moment of its turn, the next one takes it.
    const abandon = () => this.#waiting.delete(enter) || this.#pass()
    return deadline.waitFor(turn, 'connection', { abandon })
  }

  #pass(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
