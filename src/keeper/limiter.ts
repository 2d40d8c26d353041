/** Decides whether a request may be sent now: a stop, the store, a newer configuration, an outage of the service, the rate. */
import pLimit from 'p-limit'
import { excerpt, wholeMessageOf } from '../shared/text.js'
import type { Configuration } from './configuration.js'
import type { KeeperStore } from './keeper-store.js'
import type { ResolvedOptions } from './options.js'
import type { Processes } from './processes.js'
import type { Problems } from './reporter.js'
import type { Failure } from './request.js'
import { delay, lookMs, now, retryWaitMs } from './timing.js'
import type { User, Users } from './users.js'

/** It is an outage if the requests of this many users fail in a row, or of all users if there are fewer. */
const usersOfAnOutage = 3

/** Stops everything that the keeper is doing. */
export class StopSignal {
  /** Once this is true, no request is sent. */
  isStopped = false
  /** Ends the requests in flight. */
  readonly requests = new AbortController()
}

/** Why no request may be sent now. */
export interface Obstacle {
  readonly kind: 'prevented'
  readonly error: unknown
  readonly againMs: number
  /** Whether a sweep ends, and does not wait. */
  readonly endsSweeps: boolean
}

interface Outage {
  readonly error: unknown
  readonly failures: number
  /** When the last failure was counted. The failure of a request that was sent before says nothing new. */
  readonly failedSince: number
  /** When the next request may test the service. */
  readonly nextFrom: number
}

export class Limiter {
  /** The requests in flight, and those that wait for the end of one. */
  readonly #requests
  /** The users whose requests have failed since the last success. */
  readonly #failedUsers = new Set<string>()
  outage: Outage | undefined
  /** When the next request may leave. */
  #nextFrom = 0

  constructor(
    private readonly options: ResolvedOptions,
    private readonly store: KeeperStore,
    private readonly processes: Processes,
    private readonly users: Users,
    private readonly configuration: Configuration,
    private readonly problems: Problems,
  ) {
    this.#requests = pLimit(options.concurrency)
  }

  /**
   * What prevents requests now. In an outage one request at a time tests the service.
   *
   * @param ownInFlight - how many requests of the caller are in flight: the caller may send that test if there are no others.
   * Default: the caller sends nothing
   */
  obstacle(stopSignal: StopSignal, ownInFlight?: number): Obstacle | undefined {
    if (stopSignal.isStopped) return prevented(new Error(stoppedMessage), lookMs, true)
    if (this.store.isFailing) return prevented(new Error(storeMessage), 0)
    if (this.configuration.isSuperseded) return prevented(new Error(supersededMessage), lookMs, true)
    const { outage } = this
    if (outage === undefined || (this.#requests.activeCount === ownInFlight && now() >= outage.nextFrom))
      return undefined
    const error = new Error(outageMessage, { cause: outage.error })
    return prevented(error, Math.max(1_000, outage.nextFrom - now()))
  }

  /** Runs `send` when a request may leave. @returns its result, or what prevents the request */
  async run<Result>(stopSignal: StopSignal, send: () => Promise<Result>): Promise<Result | Obstacle> {
    const sendPaced = async () => {
      await this.#pace(stopSignal)
      return this.obstacle(stopSignal, 1) ?? send()
    }
    return this.obstacle(stopSignal, 0) ?? this.#requests(sendPaced)
  }

  /** Waits for the next moment that the rate allows. */
  async #pace(stopSignal: StopSignal): Promise<void> {
    const leavesFrom = Math.max(now(), this.#nextFrom)
    // All processes share the rate. Each other process adds an eighth to the spacing, because requests may coincide.
    const sharers = this.processes.sharers.length
    const spacingMs = (1_000 / this.options.maxRequestsPerSecond) * (sharers + (sharers - 1) / 8)
    if (!stopSignal.isStopped) this.#nextFrom = leavesFrom + spacingMs
    // In short waits, so that a low rate does not hold up a stop.
    while (!stopSignal.isStopped && leavesFrom > now())
      await delay(Math.min(1_000, Math.ceil(leavesFrom - now())))
  }

  succeeded(): void {
    this.#failedUsers.clear()
    this.outage = undefined
    this.problems.resolve('CREDENTIALS')
    this.problems.resolve('SERVICE')
  }

  failed({ kind, error, retryAfterMs }: Failure, user: User, sentSince: number): void {
    // Nothing was sent, so the service's state is unknown.
    if (kind !== 'credentials' && kind !== 'unavailable' && kind !== 'refused') return
    if (this.outage === undefined) {
      // Refused again: the user is the reason, not an outage.
      if (kind === 'refused' && user.failures > 0) return
      this.#failedUsers.add(user.username)
      if (this.#failedUsers.size < Math.min(usersOfAnOutage, this.users.all.size)) return
    } else if (sentSince < this.outage.failedSince) return
    const failures = (this.outage?.failures ?? 0) + 1
    const nextFrom = now() + retryWaitMs(failures, retryAfterMs)
    this.outage = { error, failures, failedSince: now(), nextFrom }
    const message = `${problemMessages[kind]} ${testMessage} The last error: ${excerpt(wholeMessageOf(error), 500)}`
    this.problems.resolve(kind === 'credentials' ? 'SERVICE' : 'CREDENTIALS')
    this.problems.begin(kind === 'credentials' ? 'CREDENTIALS' : 'SERVICE', message, { error })
  }
}

function prevented(error: Error, againMs: number, endsSweeps = false): Obstacle {
  return { kind: 'prevented', error, againMs, endsSweeps }
}

const stoppedMessage = 'The keeper was stopped before the sweep came to this user.'
const storeMessage = 'This user was not tried: the store fails. The next sweep tries again.'
const outageMessage = 'This user was not tried: the service fails. The next sweep tries again.'
const supersededMessage =
  'Another process runs a newer configuration: it subscribes this user, and this process sends nothing.'
const testMessage =
  'The keeper tries again with one request at a time: after 5 s at first, later every 5 min.'
const problemMessages = {
  credentials:
    'The credentials are refused: check the client ID and the secret, and that access was not ended.',
  unavailable: 'The service fails or cannot be reached.',
  refused: 'The service refused the last requests of all users that were tried.',
}
