/**
 * The limiter limits concurrency and rate. While the service fails, the circuit breaker lets one call at a time test it.
 */
import { excerpt, wholeMessageOf } from '../../shared/text.js'
import type { Problems } from '../reporter.js'
import { calmMs, delay, now, retryWaitMs } from '../timing.js'
import type { Failure } from './outcome.js'

/** This many different users who fail in a row are an outage. */
const usersOfAnOutage = 3

type OutageKind = Extract<Failure['kind'], 'CREDENTIALS' | 'SERVICE' | 'REFUSED'>
const codes = { CREDENTIALS: 'CREDENTIALS', SERVICE: 'SERVICE', REFUSED: 'SERVICE' } as const

interface Outage {
  readonly kind: OutageKind
  readonly error: unknown
  readonly failures: number
  /** When the next test may be made; monotonic. */
  readonly nextTestFrom: number
}

export class CircuitBreaker {
  readonly #problems: Problems
  readonly #userCount: () => number
  readonly #failedInARow = new Set<string>()
  #outage: Outage | undefined
  #tester: string | undefined
  /** When the last outage ended; monotonic. */
  #closedSince: number | undefined

  /** @param userCount - with fewer users than three, all of them make an outage */
  constructor(problems: Problems, userCount: () => number) {
    this.#problems = problems
    this.#userCount = userCount
  }

  get isOpen(): boolean {
    return this.#outage !== undefined
  }

  get isTestDue(): boolean {
    return this.#outage !== undefined && this.#tester === undefined && now() >= this.#outage.nextTestFrom
  }

  /** When the next test may be made, monotonic; 0 without an outage. */
  get nextTestFrom(): number {
    return this.#outage?.nextTestFrom ?? 0
  }

  /** The service's last failure. */
  get error(): unknown {
    return this.#outage?.error
  }

  /** Whether a call may be made for this user. In an outage the call is the test, and `leave` must follow. */
  enter(username: string): boolean {
    if (this.#outage === undefined) return true
    if (!this.isTestDue) return false
    this.#tester = username
    return true
  }

  leave(username: string): void {
    if (this.#tester === username) this.#tester = undefined
  }

  succeeded(): void {
    this.#failedInARow.clear()
    if (this.#outage === undefined) return
    this.#outage = undefined
    this.#closedSince = now()
  }

  failed(username: string, { kind, error, retryAfterMs }: Failure): void {
    // Nothing was sent, so the service's state is unknown.
    if (kind === 'INVALID' || kind === 'STORE' || kind === 'BUG') return
    // In an outage, any other call was already in flight.
    if (this.#outage !== undefined && this.#tester !== username) return
    this.#failedInARow.add(username)
    const enough = Math.min(usersOfAnOutage, Math.max(1, this.#userCount()))
    if (this.#outage === undefined && this.#failedInARow.size < enough) return
    const failures = (this.#outage?.failures ?? 0) + 1
    this.#outage = { kind, error, failures, nextTestFrom: now() + retryWaitMs(failures, retryAfterMs) }
    this.#closedSince = undefined
    this.#problems.resolve(codes[kind] === 'SERVICE' ? 'CREDENTIALS' : 'SERVICE')
    this.#problems.begin(codes[kind], outageMessage(kind, error), { error })
  }

  /** Resolves a past outage after a while, or at once at the end of the last sweep. */
  review(isLast: boolean): void {
    if (this.#closedSince === undefined || (!isLast && now() - this.#closedSince < calmMs)) return
    this.#closedSince = undefined
    this.#problems.resolve('SERVICE')
    this.#problems.resolve('CREDENTIALS')
  }
}

export class Limiter {
  readonly #circuit: CircuitBreaker
  readonly #spacingMs: number
  readonly #waiting: (() => void)[] = []
  #free: number
  /** When the next request may leave; monotonic. */
  #nextFrom = 0

  constructor(
    circuit: CircuitBreaker,
    { concurrency, maxRequestsPerSecond }: { concurrency: number; maxRequestsPerSecond: number },
  ) {
    this.#circuit = circuit
    this.#free = concurrency
    this.#spacingMs = 1_000 / maxRequestsPerSecond
  }

  /**
   * Waits until a request for this user may leave.
   *
   * @returns false in an outage; after true, {@link Limiter.leave} must follow
   */
  async enter(username: string): Promise<boolean> {
    if (this.#circuit.isOpen && !this.#circuit.isTestDue) return false
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    const leavesFrom = Math.max(now(), this.#nextFrom)
    this.#nextFrom = leavesFrom + this.#spacingMs
    if (leavesFrom > now()) await delay(Math.ceil(leavesFrom - now()))
    const mayEnter = this.#circuit.enter(username)
    if (!mayEnter) this.leave(username)
    return mayEnter
  }

  /** The request was answered, or not sent. */
  leave(username: string): void {
    this.#circuit.leave(username)
    const next = this.#waiting.shift()
    if (next === undefined) this.#free++
    else next()
  }
}

function outageMessage(kind: OutageKind, error: unknown): string {
  return `${messages[kind]} The last error: ${excerpt(wholeMessageOf(error), 500)}`
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
