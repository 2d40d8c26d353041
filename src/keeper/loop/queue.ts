/** Reconciles users when they are due, while the watch or a sweep runs. A sweep makes all users due, waits and counts. */
import pMemoize from 'p-memoize'
import { backoffMs, settlesWithin } from '../../shared/waits.js'
import { supersededMessage } from '../memory/configuration.js'
import { StoreFailure } from '../memory/keeper-store.js'
import { RosterReader, type RosterRequest } from '../memory/roster.js'
import type { Parts, User } from '../memory/users.js'
import { restoreLeftMs } from '../rules/record.js'
import {
  calmAfterEndMs,
  delay,
  longAgo,
  longestWorkMs,
  lookMs,
  minute,
  now,
  retryWaitMs,
  stopGraceMs,
  stopTimeoutMs,
  storeTimeoutMs,
  supersededLookMs,
  sweepPatienceMs,
} from '../timing.js'
import { isFailure } from './call.js'
import { Deliveries } from './deliveries.js'
import { Run } from './outage-and-limits.js'
import { type Ending, Reconciliation } from './reconcile.js'
import { type Counted, type OnProgress, SweepCount } from './sweep.js'

const tickMs = 1_000
/** If no tick came for this long, the process was suspended, or the machine slept. */
const stoodStillMs = minute
/** Users at once per request in flight, because store operations take most of a reconciliation. */
const usersPerRequest = 4
/** A user who is refused as often is a problem. */
const reportedRefusals = 3

export interface SweepRequest extends RosterRequest {
  /** Proofs since then are enough; monotonic. */
  readonly provenSince: number
}

export class Queue {
  readonly #parts: Parts
  readonly #deliveries: Deliveries
  readonly #roster: RosterReader
  readonly #inFlight = new Set<Promise<void>>()
  readonly #background = new Set<Promise<unknown>>()
  /** All calls of {@link Queue.sweep} that have not ended. */
  readonly #sweepCalls = new Set<Promise<unknown>>()
  /** The sweeps that wait for users. */
  readonly #sweeps = new Set<SweepCount>()
  /** Users who were due when it was made, the next one last. */
  #batch: User[] = []
  #isWatching = false
  /** Stopped while a stop waits for what is in flight. */
  #run = new Run()
  /** Whether a sweep has ended. */
  /** Set while the watch or a sweep runs. */
  #timer: NodeJS.Timeout | undefined
  /** When the last two ticks came, by the wall clock: the monotonic clock may stop while a machine sleeps. */
  #tickedAt = 0
  #tickedBeforeAt = 0
  #lastEndSince = longAgo
  #blockedSince = Number.POSITIVE_INFINITY
  #workedSince = longAgo

  constructor(parts: Parts) {
    this.#parts = parts
    this.#deliveries = new Deliveries(parts)
    this.#roster = new RosterReader(parts)
  }

  /** A delivery has arrived. */
  observe(subscriptionId: number): void {
    if (!this.#hasJustWoken) this.#deliveries.observe(subscriptionId, this.#isWatching)
  }

  /** Whether the process stood still until less than two ticks ago: what arrives now may be old. */
  get #hasJustWoken(): boolean {
    return this.#isWatching && Date.now() - this.#tickedBeforeAt > stoodStillMs
  }

  /** Reconciles every user once per interval after this sweep, until {@link Queue.stop}. */
  watch(sweep: () => Promise<unknown>): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.#parts.schedule.setRosterDue(this.#parts.sweepIntervalMs)
    this.#inBackground(sweep)
    this.#startTicking()
  }

  /** Ends the watch and running sweeps. Resolves when nothing is in flight, at the latest after {@link stopTimeoutMs}. */
  async stop(): Promise<void> {
    const run = this.#run
    run.isStopped = true
    this.#roster.stop()
    this.#inBackground(() => this.#parts.processes.leave())
    this.#isWatching = false
    this.#endBlockedSweeps()
    const ended = Promise.allSettled([...this.#inFlight, ...this.#sweepCalls, ...this.#background])
    if (!(await settlesWithin(stopTimeoutMs, ended))) {
      run.calls.abort(new Error(unansweredMessage))
      // What still hangs is a store or a client of the user.
      await settlesWithin(stopGraceMs, ended)
    }
    this.#sweepCalls.clear()
    this.#stopTicking()
    if (this.#run === run) this.#run = new Run()
  }

  /** One ended subscription suggests more: every user is proven again. */
  #foundEnd(): void {
    const calmMs = Math.max(calmAfterEndMs, this.#parts.sweepIntervalMs)
    const isFirst = now() - this.#lastEndSince >= calmMs
    this.#lastEndSince = now()
    if (isFirst && this.#isWatching) this.#parts.schedule.markAllDue(now())
  }

  /** Reads configuration and roster, and reconciles every user once. */
  sweep(request: SweepRequest, onProgress: OnProgress): Promise<Counted> {
    const call = this.#sweep(request, this.#run, onProgress).finally(() => {
      this.#sweepCalls.delete(call)
      this.#stopTicking()
    })
    this.#sweepCalls.add(call)
    this.#startTicking()
    return call
  }

  async #sweep(request: SweepRequest, run: Run, onProgress: OnProgress): Promise<Counted> {
    const obstacle = await this.#prepare(request, run)
    if (obstacle !== undefined) {
      // Read again as soon as the obstacle is gone.
      this.#parts.schedule.setRosterDue(0)
      return this.#reportOfNothing(request, obstacle)
    }
    const sweep = new SweepCount(this.#parts.users.all.values(), request.provenSince, onProgress)
    this.#sweeps.add(sweep)
    this.#parts.schedule.markAllDue(sweep.provenSince)
    // Both walk over all users.
    await this.#pause()
    this.#advance()
    await sweep.ended
    this.#sweeps.delete(sweep)
    return sweep.report()
  }

  /** Reads configuration and roster. @returns the reason if no user can be reconciled */
  async #prepare(request: SweepRequest, run: Run): Promise<Error | undefined> {
    const patientUntil = now() + sweepPatienceMs
    while (!run.isStopped) {
      try {
        await this.#synchronize()
        if (run.isStopped) break
        await this.#readRoster(request)
        return undefined
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error
        if (now() >= patientUntil) return error
        await delay(1_000)
      }
    }
    return new Error(stoppedMessage)
  }

  async #reportOfNothing({ wantsNone = false }: SweepRequest, error: Error): Promise<Counted> {
    const asked = wantsNone || this.#run.isStopped ? undefined : await this.#roster.ask()
    const names = [...(asked ?? this.#parts.users.all.keys())]
    const failed = names.map((username) => ({ username, error }))
    return { wanted: wantsNone ? 0 : names.length, active: 0, created: 0, restored: 0, removed: 0, failed }
  }

  #endBlockedSweeps(): void {
    const { circuit, configuration, store } = this.#parts
    const isBlocked = store.isFailing || circuit.outage !== undefined
    this.#blockedSince = isBlocked ? Math.min(this.#blockedSince, now()) : Number.POSITIVE_INFINITY
    for (const sweep of this.#sweeps) {
      const isHopeless = now() - Math.max(this.#blockedSince, sweep.startedSince) >= sweepPatienceMs
      const blocked = isHopeless ? untriedMessage : undefined
      const reason = configuration.state.isSuperseded ? supersededMessage : blocked
      const message = this.#run.isStopped ? stoppedMessage : reason
      if (message !== undefined) sweep.end(new Error(message, { cause: circuit.outage?.error }))
    }
  }

  #startTicking(): void {
    if (this.#timer !== undefined) return
    this.#tickedAt = Date.now()
    this.#tick()
  }

  #stopTicking(): void {
    if (this.#isWatching || this.#sweepCalls.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    this.#timer = setTimeout(() => this.#tick(), tickMs)
    this.#tickedBeforeAt = this.#tickedAt
    this.#tickedAt = Date.now()
    if (this.#hasJustWoken) this.#parts.schedule.markAllDue(now())
    this.#lookAround()
    this.#advance()
  }

  #advance(): void {
    if (this.#batch.length === 0) this.#collect()
    this.#beginDue()
    this.#endBlockedSweeps()
  }

  #lookAround(): void {
    const { circuit, configuration, schedule, store, sweepIntervalMs } = this.#parts
    if (store.isFailing) {
      if (schedule.begins('store', storeTimeoutMs)) this.#inBackground(() => store.check())
      return
    }
    const { isSuperseded } = configuration.state
    if (schedule.begins('configuration', isSuperseded ? supersededLookMs : lookMs)) {
      this.#deliveries.reportStrays(circuit.outage === undefined && !isSuperseded)
      this.#inBackground(() => this.#synchronize())
    }
    if (this.#isWatching && schedule.begins('roster', sweepIntervalMs))
      this.#inBackground(() => this.#readRoster({}))
  }

  /** Looks at the other processes, too. */
  async #synchronize(): Promise<void> {
    const { configuration, processes } = this.#parts
    await configuration.synchronize()
    await processes.beat(configuration.generation)
  }

  async #readRoster(request: RosterRequest): Promise<void> {
    const { schedule, sweepIntervalMs } = this.#parts
    schedule.beginRoster()
    // Tried again together with a store that failed.
    let failures = 1
    try {
      failures = await this.#roster.read(request)
    } finally {
      if (failures > 0)
        schedule.setRosterDue(backoffMs(failures, { firstMs: storeTimeoutMs, maxMs: sweepIntervalMs }))
    }
  }

  /** Failures of the store have their own report. */
  #inBackground(work: () => Promise<unknown>): void {
    const working: Promise<unknown> = work()
      .catch((err: unknown) => {
        if (err instanceof StoreFailure) return
        const message = 'A bug of the keeper stopped some work: please report it'
        this.#parts.reporter.log('error', { event: 'keeper.broken', err }, message)
      })
      .finally(() => this.#background.delete(working))
    this.#background.add(working)
  }

  /** Users without a subscription come first, and among them those for whom this process is the first. */
  #collect(): void {
    const { processes, schedule, users } = this.#parts
    const ranks: User[][] = [[], [], [], []]
    for (const user of users.all.values()) {
      if (!schedule.isDue(user.schedule)) continue
      const rank = (user.record?.id === undefined ? 2 : 0) + (processes.isFirstFor(user.username) ? 1 : 0)
      ranks[rank]?.push(user)
    }
    this.#batch = ranks.flatMap((rank) => rank.reverse())
  }

  get #mayBegin(): boolean {
    const { circuit, configuration, store } = this.#parts
    const { generation, isSuperseded } = configuration.state
    if (this.#timer === undefined || this.#run.isStopped || store.isFailing || circuit.isOpen) return false
    return generation !== undefined && !isSuperseded
  }

  #beginDue(): void {
    const { circuit, concurrency } = this.#parts
    const room = () => (circuit.outage === undefined ? usersPerRequest * concurrency : 1)
    while (this.#mayBegin && this.#inFlight.size < room()) {
      const user = this.#next()
      if (user === undefined) return
      const working = this.#work(user).finally(() => {
        this.#inFlight.delete(working)
        // A test of an outage may have made no call: the next one waits for the next tick.
        if (circuit.outage === undefined) this.#beginDue()
      })
      this.#inFlight.add(working)
    }
  }

  #next(): User | undefined {
    const { circuit, schedule, users } = this.#parts
    for (let user = this.#batch.pop(); user !== undefined; user = this.#batch.pop()) {
      if (users.all.get(user.username) === user && schedule.isDue(user.schedule)) return user
    }
    return circuit.outage === undefined ? undefined : this.#outageTester()
  }

  /** A user with a call that may be made at once: the call tests the service. */
  #outageTester(): User | undefined {
    for (const user of this.#parts.users.all.values()) {
      const { isWanted, record, schedule } = user
      // After a failure the user keeps to the schedule: the client may refuse the name.
      if (schedule.failures > 0 && schedule.dueFrom > now()) continue
      const mayCall = record === undefined || (!record.claim && restoreLeftMs(record, Date.now()) === 0)
      if (isWanted && mayCall && !schedule.isInFlight) return user
    }
    return undefined
  }

  async #work(user: User): Promise<void> {
    const { circuit, schedule, users } = this.#parts
    const run = this.#run
    schedule.begin(user.schedule)
    if (now() - this.#workedSince > longestWorkMs) await this.#pause()
    // In an outage the reconciliation must make a call.
    const provenSince = circuit.outage === undefined ? schedule.provenSince : now()
    const reconciliation = new Reconciliation(this.#parts, user, provenSince, run)
    const ending = await reconciliation.reconcile()
    schedule.end(user.schedule, this.#noteEnding(user, ending))
    const leftMs = schedule.leftMs(user.schedule)
    for (const sweep of this.#sweeps) sweep.note(reconciliation, ending, leftMs)
    if (reconciliation.gaps.some(({ cause }) => cause === 'ended')) this.#foundEnd()
    if (ending.kind === 'removed' && !user.isWanted) users.forget(user)
  }

  /** One pause for all waiting users: with one pause each, they would run one after the other without a pause. */
  readonly #pause = pMemoize(
    async () => {
      await delay(0)
      this.#workedSince = now()
    },
    { cache: false },
  )

  /** Counts failures. @returns how long the user can wait now, in ms */
  #noteEnding({ schedule, username }: User, ending: Ending): number {
    if (!isFailure(ending)) {
      const { againMs, kind } = ending
      if (kind !== 'claimed' && kind !== 'prevented') Object.assign(schedule, { failures: 0, refusals: 0 })
      return kind === 'done' || kind === 'conflict' ? Math.max(1_000, againMs) : againMs
    }
    const { log, problems } = this.#parts.reporter
    const { error: err, kind, retryAfterMs } = ending
    const failures = ++schedule.failures
    schedule.refusals = kind === 'REFUSED' ? schedule.refusals + 1 : 0
    if (schedule.refusals >= reportedRefusals)
      problems.begin('REFUSED', refusedMessage, { username, error: err })
    const fields = { username, failures, err }
    if (kind === 'BUG') log('error', { event: 'reconcile.broken', ...fields }, bugMessage)
    else log('warn', { event: 'subscription.failed', ...fields }, failureMessage)
    return ending.againMs ?? retryWaitMs(failures, retryAfterMs)
  }
}

const unansweredMessage = 'The keeper was stopped before the service answered: the outcome is unknown.'
const stoppedMessage = 'The keeper was stopped before the sweep came to this user.'
const refusedMessage =
  'The service refuses the requests of this user at every attempt: see the error. Correct the roster, or ask the operator ' +
  'of the service. The user is not subscribed.'
const untriedMessage = 'This user was not tried: the service or the store fails. The next sweep tries again.'
const bugMessage = 'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
const failureMessage = 'A user could not be kept subscribed, and is tried again'
