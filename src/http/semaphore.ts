/** Lets a limited number of requests through at once, first come, first served. */
import type { Deadline } from './deadline.js'

/**
 * The connections of a client. A request that finds none free waits here, not inside undici, where its headers would already
 * be fixed: a token can expire during such a wait.
 */
export class Semaphore {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(limit: number) {
    this.#free = limit
  }

  /** Runs `work` as soon as one is free, and says whether it had to wait. @throws the deadline's reason */
  async run<Result>(deadline: Deadline, work: (hasWaited: boolean) => Promise<Result>): Promise<Result> {
    const hasWaited = this.#free === 0
    if (hasWaited) await this.#wait(deadline)
    else this.#free -= 1
    try {
      return await work(hasWaited)
    } finally {
      this.#release()
    }
  }

  #wait(deadline: Deadline): Promise<void> {
    let enter = () => {}
    const entered = new Promise<void>((resolve) => {
      enter = resolve
    })
    this.#waiting.add(enter)
    // After an abort in the moment in which it could have entered, the next one enters.
    const abandon = () => this.#waiting.delete(enter) || this.#release()
    return deadline.waitFor(entered, 'connection', { abandon })
  }

  #release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
