/** Schedules users, roster and configuration: when each is due. Names of times: see `timing.ts`. */
import { longAgo, lookMs, now } from '../timing.js'

export interface UserSchedule {
  dueFrom: number
  /** How often all users had been due when the last reconciliation began. */
  rounds: number
  isInFlight: boolean
  /** In a row. */
  failures: number
  /** How many of the last failures were refusals of the service. */
  refusals: number
}

export class Schedule {
  readonly #sweepIntervalMs: number
  readonly #dueFrom = { store: longAgo, configuration: longAgo, roster: longAgo }
  #rosterReadSince = longAgo
  #rounds = 0
  #provenSince = longAgo

  constructor(sweepIntervalMs: number) {
    this.#sweepIntervalMs = sweepIntervalMs
  }

  /** Proofs since then are enough for every user. */
  get provenSince(): number {
    return this.#provenSince
  }

  newUser(): UserSchedule {
    return { dueFrom: longAgo, rounds: this.#rounds, isInFlight: false, failures: 0, refusals: 0 }
  }

  markDue(user: UserSchedule): void {
    user.dueFrom = Math.min(user.dueFrom, now())
  }

  /** @param provenSince - users without a proof since then are proven again */
  markAllDue(provenSince = longAgo): void {
    this.#provenSince = Math.max(this.#provenSince, provenSince)
    this.#rounds++
  }

  /** In how many milliseconds the user is due. */
  leftMs({ dueFrom, rounds }: UserSchedule): number {
    return rounds < this.#rounds ? 0 : Math.max(0, dueFrom - now())
  }

  isDue(user: UserSchedule): boolean {
    return !user.isInFlight && this.leftMs(user) === 0
  }

  begin(user: UserSchedule): void {
    // A change during the reconciliation may come too late for it: then the user is due again at once.
    Object.assign(user, { isInFlight: true, rounds: this.#rounds, dueFrom: Number.POSITIVE_INFINITY })
  }

  end(user: UserSchedule, againMs: number): void {
    user.isInFlight = false
    user.dueFrom = Math.min(user.dueFrom, now() + againMs)
  }

  /** Whether it is due now; then it is due again after a while. */
  begins(name: 'store' | 'configuration' | 'roster', againMs: number): boolean {
    if (now() < this.#dueFrom[name]) return false
    this.#dueFrom[name] = now() + againMs
    return true
  }

  /** The roster may be old: it is read soon, at most every half minute. */
  markRosterDue(): void {
    const dueFrom = this.#rosterReadSince + Math.min(lookMs, this.#sweepIntervalMs)
    this.#dueFrom.roster = Math.min(this.#dueFrom.roster, dueFrom)
  }

  beginRoster(): void {
    this.#rosterReadSince = now()
    this.setRosterDue(this.#sweepIntervalMs)
  }

  setRosterDue(againMs: number): void {
    this.#dueFrom.roster = now() + againMs
  }
}
