/** Reconciles users when they are due, while the watch or a sweep runs. A sweep is a set of users, and ends with the last one. */
import pMemoize from 'p-memoize'
import { settlesWithin } from '../shared/waits.js'
import type { Configuration } from './configuration.js'
import { type KeeperStore, StoreFailure } from './keeper-store.js'
import { type Limiter, StopSignal } from './limiter.js'
import type { ResolvedOptions } from './options.js'
import type { Processes } from './processes.js'
import type { Ending, Outcome } from './reconcile.js'
import type { Reporter } from './reporter.js'
import { isFailure } from './request.js'
import type { RosterReader } from './roster.js'
import { restoreLeftMs } from './rules/record.js'
import type { Sweep } from './sweep.js'
import {
  calmAfterEndMs,
  delay,
  longAgo,
  lookMs,
  minute,
  now,
  retryWaitMs,
  storeTimeoutMs,
  sweepPatienceMs,
} from './timing.js'
import type { User, Users } from './users.js'

const tickMs = 1_000
/** If no tick came for this long, the process was suspended, or the machine slept. */
const stoodStillMs = minute
/** How often a superseded process looks whether it may come back. */
const supersededLookMs = 10_000
/** How long a stop waits for answers, and then for the rest. */
const stopTimeoutMs = 10_000
const stopGraceMs = 1_000
/** How many users are reconciled at once for each request that may be in flight: the store takes most of the time. */
const usersPerRequest = 4
/** From this many refusals in a row on, a user is a problem. */
const reportedRefusals = 3

export class Queue {
  /** Everything that a stop waits for. */
  readonly #working = new Set<Promise<unknown>>()
  readonly #sweeps = new Set<Sweep>()
  /** How many users are reconciled now. */
  #inFlight = 0
  /** The users who were due when the batch was last collected. The next user stands last. */
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

  /** @param reconcile - never rejects; only one at a time for a user */
  constructor(
    private readonly options: ResolvedOptions,
    private readonly store: KeeperStore,
    private readonly processes: Processes,
    private readonly configuration: Configuration,
    private readonly roster: RosterReader,
    private readonly users: Users,
    private readonly limiter: Limiter,
    private readonly reporter: Reporter,
    private readonly reconcile: (user: User, stopSignal: StopSignal) => Promise<Outcome>,
  ) {}

  observe(subscriptionId: number): void {
    if (!this.#hasJustWoken()) this.users.observe(subscriptionId, this.#isWatching)
  }

  /** Reconciles every user once per interval after this sweep, until {@link Queue.stop}. */
  watch(sweep: () => Promise<unknown>): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.roster.postpone(this.options.sweepIntervalMs)
    this.#inBackground(sweep)
    this.#startTicking()
  }

  /** Ends the watch and running sweeps. Resolves when nothing is in flight, at the latest after 11 seconds. */
  async stop(): Promise<void> {
    const stopSignal = this.#stopSignal
    stopSignal.isStopped = true
    this.#inBackground(() => this.processes.leave())
    this.#isWatching = false
    this.#endBlockedSweeps()
    this.#sweeps.clear()
    this.#stopTicking()
    // What begins from now on is not stopped.
    this.#stopSignal = new StopSignal()
    const ended = Promise.allSettled(this.#working)
    if (await settlesWithin(stopTimeoutMs, ended)) return
    stopSignal.requests.abort(new Error(unansweredMessage))
    // What still hangs is a store, a client or a roster of the user.
    await settlesWithin(stopGraceMs, ended)
  }

  /** Reads configuration and roster, and reconciles every user once. */
  async run(sweep: Sweep): Promise<void> {
    this.#sweeps.add(sweep)
    this.#startTicking()
    try {
      await this.#tracked(this.#run(sweep, this.#stopSignal))
    } finally {
      this.#sweeps.delete(sweep)
      this.#stopTicking()
    }
  }

  async #run(sweep: Sweep, stopSignal: StopSignal): Promise<void> {
    const { limiter, roster, users } = this
    const failure = await this.#prepare(sweep.wantsNone, stopSignal)
    if (failure !== undefined) {
      // Read again as soon as the store works.
      roster.postpone(0)
      const asked = sweep.wantsNone ? undefined : await roster.ask()
      sweep.failAll([...(asked ?? users.all.keys())], failure)
      return
    }
    sweep.begin(users.all.values())
    users.markAllDue(sweep.provenSince)
    // A pause between two long steps: to mark and to collect all users.
    await delay(0)
    if (stopSignal.isStopped) sweep.noteObstacle(limiter.obstacle(stopSignal))
    else this.#advance()
    await sweep.ended
  }

  /** Reads configuration and roster. @returns the failure of the store that has lasted too long */
  async #prepare(wantsNone: boolean, stopSignal: StopSignal): Promise<StoreFailure | undefined> {
    const failsFrom = now() + sweepPatienceMs
    while (!stopSignal.isStopped) {
      try {
        await this.#synchronize()
        if (!stopSignal.isStopped) await this.roster.read(wantsNone)
        return undefined
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error
        if (now() >= failsFrom) return error
        await delay(1_000)
      }
    }
    return undefined
  }

  #endBlockedSweeps(): void {
    const obstacle = this.limiter.obstacle(this.#stopSignal)
    for (const sweep of this.#sweeps) sweep.noteObstacle(obstacle)
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
    if (this.#hasJustWoken()) this.users.markAllDue(now())
    this.#readWhatIsDue()
    this.#advance()
  }

  /** Whether the process stood still until less than two ticks ago: what arrives now may be old. */
  #hasJustWoken(): boolean {
    return this.#isWatching && Date.now() - this.#tickedBeforeAt > stoodStillMs
  }

  #advance(): void {
    if (this.#batch.length === 0) this.#collect()
    this.#beginDue()
    this.#endBlockedSweeps()
  }

  /** Tests a store that fails. Otherwise reads the configuration, the other processes and the roster, if they are due. */
  #readWhatIsDue(): void {
    const { limiter, roster, store } = this
    if (store.isFailing) {
      if (now() < this.#storeDueFrom) return
      this.#storeDueFrom = now() + storeTimeoutMs
      this.#inBackground(() => store.tryWrite())
      return
    }
    if (now() >= this.#synchronizationDueFrom) {
      const { isSuperseded } = this.configuration
      this.#synchronizationDueFrom = now() + (isSuperseded ? supersededLookMs : lookMs)
      this.users.reportStrays(limiter.obstacle(this.#stopSignal) === undefined)
      this.#inBackground(() => this.#synchronize())
    }
    if (this.#isWatching && roster.isDue) this.#inBackground(() => roster.read())
  }

  async #synchronize(): Promise<void> {
    await this.configuration.synchronize()
    await this.processes.beat(this.configuration.generation)
  }

  /** Failures of the store are reported where they happen. */
  #inBackground(work: () => Promise<unknown>): void {
    const working = work().catch((err: unknown) => {
      if (err instanceof StoreFailure) return
      const message = 'A bug of the keeper stopped some work: please report it'
      this.reporter.log('error', { event: 'keeper.broken', err }, message)
    })
    void this.#tracked(working)
  }

  #tracked<Result>(work: Promise<Result>): Promise<Result> {
    this.#working.add(work)
    return work.finally(() => this.#working.delete(work))
  }

  /** Users without a subscription come first; among equals, those for whom this process is first. */
  #collect(): void {
    const ranks: User[][] = [[], [], [], []]
    for (const user of this.users.all.values()) {
      if (!isDue(user)) continue
      const isFirst = this.processes.isFirstFor(user.username)
      ranks[(user.record?.id === undefined ? 2 : 0) + (isFirst ? 1 : 0)]?.push(user)
    }
    this.#batch = ranks.flatMap((rank) => rank.reverse())
  }

  #beginDue(): void {
    const { limiter } = this
    const limit = () => (limiter.outage === undefined ? usersPerRequest * this.options.concurrency : 1)
    while (this.#timer && limiter.obstacle(this.#stopSignal, 0) === undefined && this.#inFlight < limit()) {
      const user = this.#next()
      if (user === undefined) return
      this.#inBackground(() => this.#work(user))
    }
  }

  #next(): User | undefined {
    for (let user = this.#batch.pop(); user !== undefined; user = this.#batch.pop()) {
      if (this.users.all.get(user.username) === user && isDue(user)) return user
    }
    return this.limiter.outage && this.#outageTester()
  }

  /** A user whose request may be sent at once, due or not: the client may refuse the names of all users who are due. */
  #outageTester(): User | undefined {
    for (const user of this.users.all.values()) {
      const { isWanted, record } = user
      const maySend = record === undefined || (!record.claim && restoreLeftMs(record, Date.now()) === 0)
      // After a failure the user keeps to the schedule: the client may refuse the name.
      if (isWanted && maySend && !user.isInFlight && (user.failures === 0 || isDue(user))) return user
    }
    return undefined
  }

  async #work(user: User): Promise<void> {
    const stopSignal = this.#stopSignal
    this.#inFlight++
    this.users.begin(user)
    await this.#pause()
    const outcome = await this.reconcile(user, stopSignal)
    this.#noteEnding(user, outcome.ending)
    for (const sweep of this.#sweeps) sweep.note(user, outcome)
    if (outcome.gaps.some(({ cause }) => cause === 'ended')) this.#noteEndedSubscription()
    if (outcome.ending.kind === 'forget' && !user.isWanted) this.users.forget(user)
    this.#inFlight--
    // A test of an outage may have sent nothing: the next one waits for the next tick.
    if (this.limiter.outage === undefined) this.#beginDue()
  }

  /** For the process' timers and sockets: store and client may answer at once. All users who wait share a pause. */
  readonly #pause = pMemoize(() => delay(0), { cache: false })

  /** Counts failures, and decides when the user is due again. */
  #noteEnding(user: User, ending: Ending): void {
    const { againMs, error: err, kind, retryAfterMs } = ending
    if (kind === 'prevented') this.users.end(user, againMs ?? 0)
    else if (!isFailure(ending)) this.users.end(user, Math.max(1_000, againMs ?? 0), 0, 0)
    else {
      const { username } = user
      const failures = user.failures + 1
      const refusals = kind === 'refused' ? user.refusals + 1 : 0
      this.users.end(user, againMs ?? retryWaitMs(failures, retryAfterMs), failures, refusals)
      const { log, problems } = this.reporter
      if (refusals >= reportedRefusals) problems.begin('REFUSED', refusedMessage, { username, error: err })
      const fields = { username, failures, err }
      if (kind === 'bug') log('error', { event: 'reconcile.broken', ...fields }, bugMessage)
      else log('warn', { event: 'subscription.failed', ...fields }, failureMessage)
    }
  }

  /** One ended subscription suggests more: every user is proven again. */
  #noteEndedSubscription(): void {
    const isFirst = now() - this.#subscriptionEndedSince >= calmAfterEndMs(this.options.sweepIntervalMs)
    this.#subscriptionEndedSince = now()
    if (isFirst && this.#isWatching) this.users.markAllDue(now())
  }
}

const isDue = (user: User) => !user.isInFlight && now() >= user.dueFrom

const unansweredMessage = 'The keeper was stopped before the service answered: the outcome is unknown.'
const refusedMessage =
  'The service refuses the requests of this user at every attempt: see the error. Correct the roster, or ask the operator ' +
  'of the service. The user is not subscribed.'
const bugMessage = 'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
const failureMessage = 'A user could not be kept subscribed, and is tried again'
