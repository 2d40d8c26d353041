/** Reconciles users when they are due, while the watch or a sweep runs. A sweep is a set of users, and ends with the last one. */
import pMemoize from 'p-memoize'
import { settlesWithin } from '../shared/waits.js'
import { StoreFailure } from './keeper-store.js'
import { type Obstacle, StopSignal } from './limiter.js'
import type { Parts } from './parts.js'
import type { Ending, Outcome } from './reconcile.js'
import { isFailure } from './request.js'
import type { RosterRequest } from './roster.js'
import { restoreLeftMs } from './rules/record.js'
import { type Counted, type OnProgress, Sweep } from './sweep.js'
import {
  calmAfterEndMs,
  delay,
  longAgo,
  lookMs,
  minute,
  now,
  retryWaitMs,
  stopGraceMs,
  stopTimeoutMs,
  storeTimeoutMs,
  supersededLookMs,
  sweepPatienceMs,
} from './timing.js'
import type { User } from './users.js'

const tickMs = 1_000
/** If no tick came for this long, the process was suspended, or the machine slept. */
const stoodStillMs = minute
/** Users at once per request in flight, because store operations take most of a reconciliation. */
const usersPerRequest = 4
/** From this many refusals in a row on, a user is a problem. */
const reportedRefusals = 3

export interface SweepRequest extends RosterRequest {
  /** Proofs since then are enough. */
  readonly provenSince: number
}

export class Queue {
  /** Everything that a stop waits for. */
  readonly #working = new Set<Promise<unknown>>()
  readonly #sweeps = new Set<Sweep>()
  /** How many users are reconciled now. */
  #inFlight = 0
  /** The users who were due at the last look; the next one is last. */
  #batch: User[] = []
  #isWatching = false
  #stopSignal = new StopSignal()
  /** Set while the watch or a sweep runs. */
  #timer: NodeJS.Timeout | undefined
  /** When the last two ticks came, by the wall clock: the monotonic clock may stop while a machine sleeps. */
  #tickedAt = 0
  #tickedBeforeAt = 0
  #storeDueFrom = longAgo
  #synchronizationDueFrom = longAgo
  #subscriptionEndedSince = longAgo
  #downSince = Number.POSITIVE_INFINITY

  /** @param reconcile - never rejects; only one at a time for a user */
  constructor(
    private readonly parts: Pick<
      Parts,
      | 'configuration'
      | 'deliveries'
      | 'limiter'
      | 'options'
      | 'processes'
      | 'reporter'
      | 'roster'
      | 'store'
      | 'users'
    >,
    private readonly reconcile: (user: User, stopSignal: StopSignal) => Promise<Outcome>,
  ) {}

  observe(subscriptionId: number): void {
    if (!this.#hasJustWoken) this.parts.deliveries.observe(subscriptionId, this.#isWatching)
  }

  /** Whether the process stood still until less than two ticks ago: what arrives now may be old. */
  get #hasJustWoken(): boolean {
    return this.#isWatching && Date.now() - this.#tickedBeforeAt > stoodStillMs
  }

  /** Reconciles every user once per interval after this sweep, until {@link Queue.stop}. */
  watch(sweep: () => Promise<unknown>): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.parts.roster.postpone(this.parts.options.sweepIntervalMs)
    this.#inBackground(sweep)
    this.#startTicking()
  }

  /** Ends the watch and running sweeps. Resolves when nothing is in flight, at the latest after {@link stopTimeoutMs}. */
  async stop(): Promise<void> {
    const stopSignal = this.#stopSignal
    stopSignal.isStopped = true
    this.#inBackground(() => this.parts.processes.leave())
    this.#isWatching = false
    this.#endBlockedSweeps()
    const ended = Promise.allSettled(this.#working)
    if (!(await settlesWithin(stopTimeoutMs, ended))) {
      stopSignal.requests.abort(new Error(unansweredMessage))
      // What still hangs is a store, a client or a roster of the user.
      await settlesWithin(stopGraceMs, ended)
    }
    this.#sweeps.clear()
    this.#stopTicking()
    if (this.#stopSignal === stopSignal) this.#stopSignal = new StopSignal()
  }

  /** Reads configuration and roster, and reconciles every user once. */
  async sweep(request: SweepRequest, onProgress: OnProgress): Promise<Counted> {
    const sweep = new Sweep(request.provenSince, onProgress)
    this.#sweeps.add(sweep)
    this.#startTicking()
    try {
      return await this.#tracked(this.#sweep(sweep, request, this.#stopSignal))
    } finally {
      this.#sweeps.delete(sweep)
      this.#stopTicking()
    }
  }

  async #sweep(sweep: Sweep, request: SweepRequest, stopSignal: StopSignal): Promise<Counted> {
    const { roster, users } = this.parts
    const error = await this.#prepare(request, stopSignal)
    if (error !== undefined) {
      // Read again as soon as the store works.
      roster.postpone(0)
      const asked = request.wantsNone || stopSignal.isStopped ? undefined : await roster.ask()
      const names = [...(asked ?? users.all.keys())]
      const failed = names.map((username) => ({ username, error }))
      return { ...sweep.report(), wanted: request.wantsNone ? 0 : names.length, failed }
    }
    sweep.begin(users.all.values())
    users.markAllDue(request.provenSince)
    // To mark and to collect all users are long work each.
    await delay(0)
    this.#advance()
    await sweep.ended
    return sweep.report()
  }

  /** Reads configuration and roster. @returns the reason if no user can be reconciled */
  async #prepare(request: SweepRequest, stopSignal: StopSignal): Promise<unknown> {
    const { limiter, roster } = this.parts
    const patientUntil = now() + sweepPatienceMs
    for (;;) {
      try {
        if (!stopSignal.isStopped) await this.#synchronize()
        if (!stopSignal.isStopped) await roster.read(request)
        return stopSignal.isStopped ? limiter.obstacle(stopSignal)?.error : undefined
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error
        if (now() >= patientUntil) return error
        await delay(1_000)
      }
    }
  }

  #endBlockedSweeps(): void {
    const { limiter, store } = this.parts
    const obstacle = limiter.obstacle(this.#stopSignal)
    const isDown = store.isFailing || limiter.outage !== undefined
    this.#downSince = isDown ? Math.min(this.#downSince, now()) : Number.POSITIVE_INFINITY
    for (const sweep of this.#sweeps) {
      const downMs = now() - Math.max(this.#downSince, sweep.startedSince)
      if (obstacle !== undefined && hopeless.includes(obstacle.kind)) sweep.end(obstacle.error)
      else if (downMs >= sweepPatienceMs)
        sweep.end(new Error(untriedMessage, { cause: limiter.outage?.error }))
    }
  }

  #startTicking(): void {
    if (this.#timer !== undefined) return
    this.#tickedAt = Date.now()
    this.#tick()
  }

  #stopTicking(): void {
    if (this.#isWatching || this.#sweeps.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    this.#timer = setTimeout(() => this.#tick(), tickMs)
    this.#tickedBeforeAt = this.#tickedAt
    this.#tickedAt = Date.now()
    if (this.#hasJustWoken) this.parts.users.markAllDue(now())
    this.#lookAround()
    this.#advance()
  }

  #advance(): void {
    if (this.#batch.length === 0) this.#collect()
    this.#beginDue()
    this.#endBlockedSweeps()
  }

  /** Tests a store that fails; otherwise looks at the configuration and the other processes, and reads the roster. */
  #lookAround(): void {
    const { configuration, deliveries, limiter, roster, store } = this.parts
    if (store.isFailing) {
      if (now() < this.#storeDueFrom) return
      this.#storeDueFrom = now() + storeTimeoutMs
      this.#inBackground(() => store.tryWrite())
      return
    }
    if (now() >= this.#synchronizationDueFrom) {
      const { isSuperseded } = configuration
      this.#synchronizationDueFrom = now() + (isSuperseded ? supersededLookMs : lookMs)
      deliveries.reportStrays(limiter.outage === undefined && !isSuperseded)
      this.#inBackground(() => this.#synchronize())
    }
    if (this.#isWatching && roster.isDue) this.#inBackground(() => roster.read({}))
  }

  async #synchronize(): Promise<void> {
    const { configuration, processes } = this.parts
    await configuration.synchronize()
    await processes.beat(configuration.generation)
  }

  /** Failures of the store are reported where they happen. */
  #inBackground(work: () => Promise<unknown>): void {
    const working = work().catch((err: unknown) => {
      if (err instanceof StoreFailure) return
      const message = 'A bug of the keeper stopped some work: please report it'
      this.parts.reporter.log('error', { event: 'keeper.broken', err }, message)
    })
    void this.#tracked(working)
  }

  #tracked<Result>(work: Promise<Result>): Promise<Result> {
    this.#working.add(work)
    return work.finally(() => this.#working.delete(work))
  }

  /** Users without a subscription come first. Within each group, the users of this process come first. */
  #collect(): void {
    const { processes, users } = this.parts
    const ranks: User[][] = [[], [], [], []]
    for (const user of users.all.values()) {
      if (!isDue(user)) continue
      const rank = (user.record?.id === undefined ? 2 : 0) + (processes.isFirstFor(user.username) ? 1 : 0)
      ranks[rank]?.push(user)
    }
    this.#batch = ranks.flatMap((rank) => rank.reverse())
  }

  #beginDue(): void {
    const { limiter, options } = this.parts
    const room = () => (limiter.outage === undefined ? usersPerRequest * options.concurrency : 1)
    while (this.#timer && limiter.obstacle(this.#stopSignal) === undefined && this.#inFlight < room()) {
      const user = this.#next()
      if (user === undefined) return
      this.#inBackground(() => this.#work(user))
    }
  }

  #next(): User | undefined {
    for (let user = this.#batch.pop(); user !== undefined; user = this.#batch.pop()) {
      if (this.parts.users.all.get(user.username) === user && isDue(user)) return user
    }
    return this.parts.limiter.outage && this.#outageTester()
  }

  /** A user whose request may be sent at once, due or not: the client may refuse the names of all users who are due. */
  #outageTester(): User | undefined {
    for (const user of this.parts.users.all.values()) {
      const { isWanted, record } = user
      const maySend = record === undefined || (!record.claim && restoreLeftMs(record, Date.now()) === 0)
      // After a failure the user keeps to the schedule: the client may refuse the name.
      if (isWanted && maySend && !user.isInFlight && (user.failures === 0 || isDue(user))) return user
    }
    return undefined
  }

  async #work(user: User): Promise<void> {
    const { limiter, users } = this.parts
    const stopSignal = this.#stopSignal
    this.#inFlight++
    users.begin(user)
    await this.#pause()
    const outcome = await this.reconcile(user, stopSignal)
    this.#noteEnding(user, outcome.ending)
    const leftMs = Math.max(0, user.dueFrom - now())
    for (const sweep of this.#sweeps) sweep.note(user, outcome, leftMs)
    if (outcome.gaps.some(({ cause }) => cause === 'ended')) this.#noteEndedSubscription()
    if (outcome.ending.kind === 'removed' && !user.isWanted) users.forget(user)
    this.#inFlight--
    // A test of an outage may have sent nothing: the next one waits for the next tick.
    if (limiter.outage === undefined) this.#beginDue()
  }

  /** For the process' timers and sockets: store and client may answer at once. All users who wait share a pause. */
  readonly #pause = pMemoize(() => delay(0), { cache: false })

  /** Counts failures, and decides when the user is due again. */
  #noteEnding(user: User, ending: Ending): void {
    const { reporter, users } = this.parts
    const { failures, refusals, username } = user
    if (!isFailure(ending)) {
      const { againMs, kind } = ending
      const isReached = reached.includes(kind)
      const inARow = isReached ? { failures: 0, refusals: 0 } : { failures, refusals }
      users.end(user, kind === 'done' || kind === 'conflict' ? Math.max(1_000, againMs) : againMs, inARow)
      return
    }
    const { error: err, kind, retryAfterMs } = ending
    const inARow = { failures: failures + 1, refusals: kind === 'refused' ? refusals + 1 : 0 }
    users.end(user, ending.againMs ?? retryWaitMs(inARow.failures, retryAfterMs), inARow)
    if (inARow.refusals >= reportedRefusals)
      reporter.problems.begin('REFUSED', refusedMessage, { username, error: err })
    const fields = { username, failures: inARow.failures, err }
    if (kind === 'bug') reporter.log('error', { event: 'reconcile.broken', ...fields }, bugMessage)
    else reporter.log('warn', { event: 'subscription.failed', ...fields }, failureMessage)
  }

  /** One ended subscription suggests more: every user is proven again. */
  #noteEndedSubscription(): void {
    const { options, users } = this.parts
    const isFirst = now() - this.#subscriptionEndedSince >= Math.max(calmAfterEndMs, options.sweepIntervalMs)
    this.#subscriptionEndedSince = now()
    if (isFirst && this.#isWatching) users.markAllDue(now())
  }
}

const isDue = (user: User) => !user.isInFlight && now() >= user.dueFrom
/** A sweep that meets one of these ends. */
const hopeless: readonly Obstacle['kind'][] = ['stopped', 'superseded']
/** The service or the record has answered: failures in a row have ended. */
const reached: readonly Ending['kind'][] = ['done', 'removed', 'conflict', 'waiting']

const unansweredMessage = 'The keeper was stopped before the service answered: the outcome is unknown.'
const refusedMessage =
  'The service refuses the requests of this user at every attempt: see the error. Correct the roster, or ask the operator ' +
  'of the service. The user is not subscribed.'
const untriedMessage = 'This user was not tried: the service or the store fails. The next sweep tries again.'
const bugMessage = 'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
const failureMessage = 'A user could not be kept subscribed, and is tried again'
