/** What holds calls back: limits of concurrency and rate, an outage of the service, and a wrong route. */
import { ApiError } from '../../errors.js'
import type { Operation } from '../../shared/routes.js'
import { excerpt, messageOf, wholeMessageOf } from '../../shared/text.js'
import type { Processes } from '../memory/processes.js'
import type { ResolvedOptions } from '../options.js'
import type { Problems } from '../reporter.js'
import { brokenAnswerMs, delay, now, retryWaitMs } from '../timing.js'
import type { Failure } from './call.js'

/** This many different users who fail in a row are an outage. */
const usersOfAnOutage = 3

interface Outage {
  readonly error: unknown
  readonly failures: number
  /** When the next test may be made; monotonic. */
  readonly nextTestFrom: number
}

/** While the service fails, one call at a time tests it. */
export class CircuitBreaker {
  readonly #problems: Problems
  readonly #failedInARow = new Set<string>()
  #outage: Outage | undefined
  #tester: string | undefined

  constructor(problems: Problems) {
    this.#problems = problems
  }

  get outage(): Outage | undefined {
    return this.#outage
  }

  /** Whether no call may be made: in an outage, between two tests. */
  get isOpen(): boolean {
    return this.#outage !== undefined && (this.#tester !== undefined || now() < this.#outage.nextTestFrom)
  }

  /** Whether a call may be made for this user. In an outage the call is the test, and `leave` must follow. */
  enter(username: string): boolean {
    if (this.isOpen) return false
    if (this.#outage !== undefined) this.#tester = username
    return true
  }

  leave(username: string): void {
    if (this.#tester === username) this.#tester = undefined
  }

  succeeded(): void {
    this.#failedInARow.clear()
    this.#outage = undefined
    this.#problems.resolve('CREDENTIALS')
    this.#problems.resolve('SERVICE')
  }

  /** @param userCount - with fewer users than three, all of them make an outage */
  failed(username: string, failure: Failure, isRepeated: boolean, userCount: number): void {
    const { kind, error, retryAfterMs } = failure
    // Nothing was sent, so the service's state is unknown.
    if (kind !== 'CREDENTIALS' && kind !== 'SERVICE' && kind !== 'REFUSED') return
    if (this.#outage === undefined) {
      // Refused again: that is this user's own.
      if (kind === 'REFUSED' && isRepeated) return
      this.#failedInARow.add(username)
      if (this.#failedInARow.size < Math.min(usersOfAnOutage, userCount)) return
    } else if (this.#tester !== username) return // The call was already in flight.
    const failures = (this.#outage?.failures ?? 0) + 1
    this.#outage = { error, failures, nextTestFrom: now() + retryWaitMs(failures, retryAfterMs) }
    const message = `${outageMessages[kind]} ${testMessage} The last error: ${excerpt(wholeMessageOf(error), 500)}`
    this.#problems.resolve(kind === 'CREDENTIALS' ? 'SERVICE' : 'CREDENTIALS')
    this.#problems.begin(kind === 'CREDENTIALS' ? kind : 'SERVICE', message, { error })
  }
}

/** What runs from a start or a sweep until the next stop. */
export class Run {
  /** No call begins after it. */
  isStopped = false
  /** Ends the calls in flight. */
  readonly calls = new AbortController()
}

export class Limiter {
  readonly #circuit: CircuitBreaker
  readonly #processes: Processes
  readonly #spacingMs: number
  readonly #waiting: (() => void)[] = []
  #free: number
  /** When the next request may leave; monotonic. */
  #nextFrom = 0

  constructor(circuit: CircuitBreaker, processes: Processes, options: ResolvedOptions) {
    this.#circuit = circuit
    this.#processes = processes
    this.#free = options.concurrency
    this.#spacingMs = 1_000 / options.maxRequestsPerSecond
  }

  /** @returns whether a request may leave now: not in an outage or after a stop. If so, {@link Limiter.leave} must follow */
  async enter(username: string, run: Run): Promise<boolean> {
    if (run.isStopped || this.#circuit.isOpen) return false
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (run.isStopped) {
      this.leave(username)
      return false
    }
    const leavesFrom = Math.max(now(), this.#nextFrom)
    // The rate is of all processes together; an eighth less for each other one, because their requests may coincide.
    const { count } = this.#processes
    this.#nextFrom = leavesFrom + this.#spacingMs * (count + (count - 1) / 8)
    // In short waits, so that a low rate does not hold up a stop.
    while (!run.isStopped && leavesFrom > now()) await delay(Math.min(1_000, Math.ceil(leavesFrom - now())))
    const mayEnter = !run.isStopped && this.#circuit.enter(username)
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

/** Which of the routes that the interface leaves open work, as far as this process knows. */
export class RouteTrust {
  readonly #problems: Problems
  readonly #proven = new Set<Operation>()
  /** Wrong routes, and when each may be tried again; monotonic. */
  readonly #wrong = new Map<Operation, number>()
  /** The users who test unproven routes. */
  readonly #testers = new Map<Operation, string>()
  /** Users who wait for those tests. */
  readonly #waiting: (() => void)[] = []

  constructor(problems: Problems) {
    this.#problems = problems
  }

  isProven(route: Operation): boolean {
    return this.#proven.has(route) && !this.#wrong.has(route)
  }

  /** Whether the route may be tried: it is not known to be wrong, or was not tried for a while. */
  mayTry(route: Operation): boolean {
    return now() >= (this.#wrong.get(route) ?? 0)
  }

  /** One user at a time tests an unproven route; the others wait. {@link end} must follow. @returns whether this user waited */
  async begin(route: Operation, username: string): Promise<boolean> {
    let hasWaited = false
    for (; this.mayTry(route) && !this.isProven(route); hasWaited = true) {
      const tester = this.#testers.get(route) ?? username
      this.#testers.set(route, tester)
      if (tester === username) break
      // Two users who test a route each, and wait for the other, would wait for ever.
      this.end(username)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return hasWaited
  }

  end(username: string): void {
    for (const [route, tester] of this.#testers) {
      if (tester !== username) continue
      this.#testers.delete(route)
      this.#wake()
    }
  }

  #wake(): void {
    for (const resume of this.#waiting.splice(0)) resume()
  }

  prove(route: Operation): void {
    this.#proven.add(route)
    this.#wake()
    if (this.#wrong.delete(route) && this.#wrong.size === 0) this.#problems.resolve('ROUTES')
  }

  refute(route: Operation, error: unknown): void {
    this.#wrong.set(route, now() + brokenAnswerMs)
    this.#wake()
    this.#problems.begin('ROUTES', routesMessage([...this.#wrong.keys()], error), { error })
  }
}

const testMessage = 'The keeper tries again with one call at a time: after 5 s at first, later every 5 min.'
const outageMessages = {
  CREDENTIALS:
    'The credentials are refused: check the client ID and the secret, and that access was not ended.',
  SERVICE: 'The service fails or cannot be reached.',
  REFUSED: 'The service refused the last requests of all users that were tried.',
}

function routesMessage(routes: readonly Operation[], error: unknown): string {
  const settings = routes.map((route) => `\`routes.${route}\``).join(' and ')
  const refusal =
    error instanceof ApiError && error.url ? `${error.url} answered ${error.status}` : messageOf(error)
  const answer = error === undefined ? 'an unsubscribe was answered 2xx, and ended nothing' : refusal
  return (
    `The service has another route than ${settings} of the client: ${answer}. Set \`routes.update\` and ` +
    '`routes.unsubscribe` to the methods and paths of this service: until then subscriptions are not updated or not ended.'
  )
}
