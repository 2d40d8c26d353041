/** Ends that were found: the receiver probably failed, and others may have ended with them. */
import type { Problems } from './reporter.js'

const minute = 60_000
/** Without another end for this time, or an interval if that is longer, the incident is over. */
const quietMs = 15 * minute
/** At most one sweep in this time because of ends that were found. */
const sweepPauseMs = minute

export class Incidents {
  readonly #problems: Problems
  readonly #quietMs: number
  #lastEndSince = Number.NEGATIVE_INFINITY
  #lastSweepSince = Number.NEGATIVE_INFINITY
  #wantsSweep = false
  /** Whether a restored subscription has delivered since the last end. */
  #isReceiverWorking = false

  constructor(problems: Problems, sweepIntervalMs: number) {
    this.#problems = problems
    this.#quietMs = Math.max(quietMs, sweepIntervalMs)
  }

  /** When the last end was found; monotonic. */
  get lastEndSince(): number {
    return this.#lastEndSince
  }

  /** @param isFirst - whether the user has delivered since the last end: one that ends again says nothing of others */
  foundEnd(username: string, isFirst: boolean): void {
    const now = performance.now()
    const isNewIncident = now - this.#lastEndSince >= this.#quietMs
    this.#lastEndSince = now
    this.#isReceiverWorking = false
    if (isFirst || isNewIncident) this.#wantsSweep = true
    this.#problems.addUser('RECEIVER_SUSPECTED', username, message)
  }

  /** A subscription that was restored has delivered. */
  delivered(): void {
    this.#isReceiverWorking = true
  }

  /** Whether a sweep is to find what ended with the others; says so once. */
  takeSweep(): boolean {
    const now = performance.now()
    if (!this.#wantsSweep || now - this.#lastSweepSince < sweepPauseMs) return false
    this.#wantsSweep = false
    this.#lastSweepSince = now
    return true
  }

  /** A sweep that begins now finds everything. */
  forgetSweep(): void {
    this.#wantsSweep = false
  }

  review(): void {
    const waitMs = this.#isReceiverWorking ? minute : this.#quietMs
    if (performance.now() - this.#lastEndSince >= waitMs) this.#problems.resolveOfUsers('RECEIVER_SUSPECTED')
  }
}

function message(userCount: number): string {
  const found =
    userCount === 1
      ? 'A subscription was found ended and is'
      : `${userCount} subscriptions were found ended and are`
  return (
    `${found} restored. The service ends a subscription after three failed callbacks in a row: the receiver was probably ` +
    'down, slow or refusing. Look at its log, and at the log of what stands in front of it, since `lastProvenAt` of the ' +
    'gap, which `onGap` gets, or else the line `subscription.restored` in the log.'
  )
}
