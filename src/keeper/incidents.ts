/** Ends that were found: an incident of the receiver, which probably concerns others, too. */
import type { Problems } from './problems.js'
import { incidentPauseMs } from './timing.js'

/** Without another end for this time, or an interval if that is longer, the receiver is believed to work. */
const quietMs = 900_000

export class Incidents {
  readonly #problems: Problems
  readonly #quietMs: number
  /** When the last end was found; monotonic. */
  lastEndSince = Number.NEGATIVE_INFINITY
  #isWorkingAgain = false

  constructor(problems: Problems, sweepIntervalMs: number) {
    this.#problems = problems
    this.#quietMs = Math.max(quietMs, sweepIntervalMs)
  }

  foundEnd(username: string): void {
    this.lastEndSince = performance.now()
    this.#isWorkingAgain = false
    this.#problems.addUser(
      'RECEIVER_SUSPECTED',
      username,
      (count) =>
        `${count === 1 ? 'A subscription was found ended and is' : `${count} subscriptions were found ended and are`} ` +
        'restored. The service ends a subscription after three failed callbacks in a row: the receiver was probably ' +
        'down, slow or refusing. Look at its log, and at the log of what stands in front of it, since the last proof: ' +
        '`lastProvenAt` of the gap, which `onGap` gets, or else a line of its own in the log.',
    )
  }

  /** A delivery arrived for a user who had been restored. */
  delivered(): void {
    this.#isWorkingAgain = true
  }

  review(now: number): void {
    // What ended with the one that was found first may still be found.
    const waitMs = this.#isWorkingAgain ? incidentPauseMs : this.#quietMs
    if (now - this.lastEndSince >= waitMs) this.#problems.endAll('RECEIVER_SUSPECTED')
  }
}
