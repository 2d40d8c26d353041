/**
 * Lets no more requests be in flight, and no more leave in a second, than are allowed; and the circuit breaker, which
 * lets one request at a time test a service that fails.
 */
import { excerpt, wholeMessageOf } from '../shared/text.js'
import type { Failure, FailureKind } from './call.js'
import type { Problems } from './reporter.js'
import { delay, retryWaitMs } from './timing.js'

/** At higher rates windows are shorter than a tenth of a second: the ring stays small. */
const maxRingRate = 10_000

export class Limiter {
  readonly #circuit: CircuitBreaker
  readonly #windowMs: number
  /** When the requests of the last window were let through: a ring, in which the oldest is overwritten. */
  readonly #enteredSince: number[]
  readonly #waiting: (() => void)[] = []
  #next = 0
  #free: number

  constructor(
    circuit: CircuitBreaker,
    { concurrency, maxRequestsPerSecond }: { concurrency: number; maxRequestsPerSecond: number },
  ) {
    this.#circuit = circuit
    this.#free = concurrency
    // Windows of a tenth of a second or less, so that a second does not begin with a burst. Without a limit they take 0 ms.
    const perWindow = Math.max(1, Math.floor(Math.min(maxRequestsPerSecond, maxRingRate) / 10))
    this.#windowMs = (perWindow / maxRequestsPerSecond) * 1_000
    this.#enteredSince = new Array<number>(perWindow).fill(Number.NEGATIVE_INFINITY)
  }

  /**
   * Waits until a request for this user may be sent.
   *
   * @returns false in an outage; true must be followed by {@link Limiter.leave}
   */
  async enter(username: string): Promise<boolean> {
    if (!this.#circuit.allows(username)) return false
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    for (let waitMs = this.#waitMs(); waitMs > 0; waitMs = this.#waitMs()) await delay(Math.ceil(waitMs))
    if (!this.#circuit.allows(username)) {
      this.leave()
      return false
    }
    this.#enteredSince[this.#next] = performance.now()
    this.#next = (this.#next + 1) % this.#enteredSince.length
    return true
  }

  /** The request was answered, or not sent. */
  leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free++
    else next()
  }

  #waitMs(): number {
    const oldest = this.#enteredSince[this.#next]
    return oldest === undefined ? 0 : Math.max(0, oldest + this.#windowMs - performance.now())
  }
}

/** Failures that can concern everybody. */
type OutageKind = Extract<FailureKind, 'CREDENTIALS' | 'SERVICE' | 'REFUSED'>

interface OpenCircuit {
  /** What the last test failed with. */
  readonly error: unknown
  readonly failures: number
  /** When the next test may be made; monotonic. */
  readonly nextTestFrom: number
  /** Who tests at the moment. */
  tester: string | undefined
}

const usersOfAnOutage = 3
/** Hysteresis: so long without an outage before it is resolved, so that a service that flaps is one problem. */
const calmMs = 60_000

const codes = { CREDENTIALS: 'CREDENTIALS', SERVICE: 'SERVICE', REFUSED: 'SERVICE' } as const

export class CircuitBreaker {
  readonly #problems: Problems
  readonly #userCount: () => number
  readonly #failedInARow = new Set<string>()
  #open: OpenCircuit | undefined
  #reported: OutageKind | undefined
  /** When the circuit was closed; monotonic. */
  #closedSince = Number.POSITIVE_INFINITY

  /** @param userCount - with fewer users than three, all of them make an outage */
  constructor(problems: Problems, userCount: () => number) {
    this.#problems = problems
    this.#userCount = userCount
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /** Whether it is time for a test. */
  get isTestDue(): boolean {
    const open = this.#open
    return open !== undefined && open.tester === undefined && performance.now() >= open.nextTestFrom
  }

  /** When the next test may be made, monotonic; 0 without an outage. */
  get nextTestFrom(): number {
    return this.#open?.nextTestFrom ?? 0
  }

  /** What the service fails with. */
  get error(): unknown {
    return this.#open?.error
  }

  /** Whether a call may be made for this user: in an outage only for the tester. */
  allows(username: string): boolean {
    return this.#open === undefined || this.#open.tester === username
  }

  /** The next call for this user is the test. */
  beginTest(username: string): void {
    if (this.#open !== undefined) this.#open.tester = username
  }

  /** The test has ended, whether a call was made or not. */
  endTest(username: string): void {
    if (this.#open?.tester === username) this.#open.tester = undefined
  }

  /** A call was answered. */
  succeeded(): void {
    this.#failedInARow.clear()
    if (this.#open === undefined) return
    this.#open = undefined
    this.#closedSince = performance.now()
  }

  /** A call failed. */
  failed(username: string, { kind, error, retryAfterMs }: Failure): void {
    // Nothing was sent, so nothing was learnt of the service.
    if (kind === 'INVALID' || kind === 'STORE' || kind === 'BUG') return
    const open = this.#open
    // Any other call was in flight when the outage was noticed.
    if (open !== undefined && open.tester !== username) return
    if (open === undefined) {
      this.#failedInARow.add(username)
      if (this.#failedInARow.size < Math.min(usersOfAnOutage, Math.max(1, this.#userCount()))) return
    }
    const failures = (open?.failures ?? 0) + 1
    const nextTestFrom = performance.now() + retryWaitMs(failures, retryAfterMs)
    this.#open = { error, failures, nextTestFrom, tester: undefined }
    this.#report(kind, error)
  }

  /** @param isWatching - whether there will be another review before long */
  review(isWatching: boolean): void {
    if (performance.now() - this.#closedSince >= (isWatching ? calmMs : 0)) this.#resolve()
  }

  #report(kind: OutageKind, error: unknown): void {
    this.#closedSince = Number.POSITIVE_INFINITY
    if (this.#reported !== undefined && this.#reported !== kind) this.#resolve()
    this.#reported = kind
    const cause = excerpt(wholeMessageOf(error), 500)
    this.#problems.begin(codes[kind], `${messages[kind]} The last error: ${cause}`, { error })
  }

  #resolve(): void {
    if (this.#reported !== undefined) this.#problems.resolve(codes[this.#reported])
    this.#reported = undefined
    this.#closedSince = Number.POSITIVE_INFINITY
  }
}

const messages: Readonly<Record<OutageKind, string>> = {
  CREDENTIALS:
    'The credentials are refused: check the client ID and the secret, and that access was not ended. ' +
    'One call at a time tests whether they are accepted again.',
  SERVICE:
    'The service fails or cannot be reached. One call at a time, from every 5 s to every 5 min, tests whether it is back.',
  REFUSED:
    'The service refused the last requests of all users that were tried. ' +
    'One call at a time goes on testing.',
}
