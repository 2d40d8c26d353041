/** Not more requests in any second than are allowed, evenly enough to be no burst. */

export class RateLimit {
  readonly #windowMs: number
  /** When the last few requests were sent: a ring, in which the oldest is overwritten. */
  readonly #sentSince: number[]
  #next = 0

  constructor(maxRequestsPerSecond: number) {
    // Tenths of a second: as many of them as make a second together hold no more than a second may.
    const count = Number.isFinite(maxRequestsPerSecond)
      ? Math.max(1, Math.floor(maxRequestsPerSecond / 10))
      : 0
    this.#windowMs = (count / maxRequestsPerSecond) * 1_000
    this.#sentSince = new Array<number>(count).fill(Number.NEGATIVE_INFINITY)
  }

  /** How long the next request has to wait, in milliseconds. */
  waitMs(now: number): number {
    const oldest = this.#sentSince[this.#next]
    return oldest === undefined ? 0 : Math.max(0, oldest + this.#windowMs - now)
  }

  /** A request is sent now. */
  spend(now: number): void {
    if (this.#sentSince.length === 0) return
    this.#sentSince[this.#next] = now
    this.#next = (this.#next + 1) % this.#sentSince.length
  }
}
