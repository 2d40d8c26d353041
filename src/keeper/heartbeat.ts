/** A regular call while anybody holds it. It notices when the process has slept. */
import { heartbeatMs } from './timing.js'

/** A beat that comes this much late was held up: by a machine that slept, or a process that was stopped. */
const sleptMs = 60_000

export class Heartbeat {
  readonly #beat: () => Promise<void>
  readonly #onSlept: () => void
  #holders = 0
  #timer: NodeJS.Timeout | undefined
  #beatInFlight: Promise<void> = Promise.resolve()

  constructor(beat: () => Promise<void>, onSlept: () => void) {
    this.#beat = beat
    this.#onSlept = onSlept
  }

  /** Keeps the heart beating until {@link Heartbeat.release}. */
  hold(): void {
    this.#holders++
    if (this.#holders === 1) this.#wait()
  }

  /** @returns whether this was the last holder, once no beat is in flight any more */
  async release(): Promise<boolean> {
    this.#holders--
    if (this.#holders > 0) return false
    clearTimeout(this.#timer)
    await this.#beatInFlight
    return this.#holders === 0
  }

  #wait(): void {
    // Somebody may have begun to hold it while a beat was in flight: there is one beat to wait for, not two.
    clearTimeout(this.#timer)
    const since = performance.now()
    const at = Date.now()
    this.#timer = setTimeout(() => {
      // The monotonic clock of some systems stands still while they sleep.
      const passedMs = Math.max(performance.now() - since, Date.now() - at)
      this.#beatInFlight = this.#beat().finally(() => {
        if (this.#holders > 0) this.#wait()
      })
      if (passedMs - heartbeatMs > sleptMs) this.#onSlept()
    }, heartbeatMs)
  }
}
