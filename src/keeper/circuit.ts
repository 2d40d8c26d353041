/** Tells an outage from the trouble of a single user. In an outage one call at a time tests the water. */
import type { Trouble, TroubleKind } from './classify.js'
import { retryWaitMs } from './timing.js'

/** Troubles that can concern everybody. */
export type OutageKind = Exclude<TroubleKind, 'INVALID'>

export interface Outage {
  kind: OutageKind
  /** What the last test failed with. */
  error: unknown
}

interface OpenCircuit extends Outage {
  failures: number
  /** When the next call may test the water; monotonic. */
  nextTestFrom: number
  isTesting: boolean
  lastTester: string
}

/** Different users in a row who fail, whatever with: that is an outage, of the kind that was met last. */
const usersOfAnOutage = 3

export class Circuit {
  readonly #userCount: () => number
  readonly #onOutage: (outage: Outage) => void
  readonly #onRecovery: () => void
  readonly #failedInARow = new Set<string>()
  #open: OpenCircuit | undefined

  /** @param userCount - with fewer than three users, as many as there are make an outage */
  constructor(
    userCount: () => number,
    listeners: { onOutage: (outage: Outage) => void; onRecovery: () => void },
  ) {
    this.#userCount = userCount
    this.#onOutage = listeners.onOutage
    this.#onRecovery = listeners.onRecovery
  }

  get outage(): Outage | undefined {
    return this.#open
  }

  /** When a call may be tried: 0 for at once, monotonic. */
  get nextCallFrom(): number {
    if (this.#open === undefined) return 0
    return this.#open.isTesting ? Number.POSITIVE_INFINITY : this.#open.nextTestFrom
  }

  /** Whether this user would be another one than the last to test the water: who is due should be tried in turn. */
  isAnother(username: string): boolean {
    return this.#open === undefined || this.#open.lastTester !== username || this.#userCount() < 2
  }

  /** Asks for permission to make one call, which must then be followed by {@link Circuit.tell}. */
  claim(username: string, now: number): boolean {
    const open = this.#open
    if (open === undefined) return true
    if (open.isTesting || now < open.nextTestFrom) return false
    open.isTesting = true
    open.lastTester = username
    return true
  }

  /** The call that was permitted was not made. */
  giveBack(username: string): void {
    if (this.#open?.lastTester === username) this.#open.isTesting = false
  }

  /** Another process makes the calls from now on. */
  forget(): void {
    this.#recover()
  }

  /** A call was answered, or failed. */
  tell(username: string, trouble: Trouble | undefined, now: number): void {
    if (trouble === undefined) this.#recover()
    // Nothing was sent, so nothing was learnt.
    else if (trouble.kind === 'INVALID') this.giveBack(username)
    else if (this.#open !== undefined) this.#testFailed(this.#open, username, trouble, now)
    else this.#count(username, trouble, trouble.kind, now)
  }

  #count(username: string, trouble: Trouble, kind: OutageKind, now: number): void {
    this.#failedInARow.add(username)
    if (this.#failedInARow.size < Math.min(usersOfAnOutage, Math.max(1, this.#userCount()))) return
    this.#open = {
      kind,
      error: trouble.error,
      failures: 1,
      nextTestFrom: now + retryWaitMs(1, trouble.retryAfterMs),
      isTesting: false,
      lastTester: username,
    }
    this.#onOutage(this.#open)
  }

  #testFailed(open: OpenCircuit, username: string, trouble: Trouble, now: number): void {
    // A call that was in flight already when the outage was noticed is no test.
    if (!open.isTesting || open.lastTester !== username) return
    open.isTesting = false
    open.failures++
    if (open.kind !== trouble.kind && trouble.kind !== 'INVALID') {
      open.kind = trouble.kind
      open.error = trouble.error
      this.#onOutage(open)
    }
    open.error = trouble.error
    open.nextTestFrom = now + retryWaitMs(open.failures, trouble.retryAfterMs)
  }

  #recover(): void {
    this.#failedInARow.clear()
    if (this.#open === undefined) return
    this.#open = undefined
    this.#onRecovery()
  }
}
