/** Lets a limited number of requests through at once, first come, first served. */
import type { Deadline } from './deadline.js'

/**
 * The connections of a client. A request that finds none free waits here, not inside undici, where its headers would already
 * be fixed: a token can expire during such a wait.
 */
export class Semaphore {
  readonly #waiting = new Set<() => void>()

  constructor(private free: number) {}

  /** Takes a connection as soon as one is free, and says whether it had to wait. @throws the deadline's reason */
  async acquire(deadline: Deadline): Promise<boolean> {
    if (this.free > 0) {
      this.free -= 1
      return false
    }
    let enter = () => {}
    const entered = new Promise<void>((resolve) => {
      enter = resolve
    })
    this.#waiting.add(enter)
    // A request that is aborted when a connection has just become free for it passes the connection on.
    const abandon = () => this.#waiting.delete(enter) || this.release()
    await deadline.waitFor(entered, 'connection', { abandon })
    return true
  }

  release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
