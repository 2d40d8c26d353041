/**
 * The owner of time: knows when each user, the roster and the configuration are due, what is in flight, and how often it
 * failed. A sweep makes all users due, waits and counts. Names of times: see `timing.ts`.
 */
import { singleFlight } from '../../shared/calls.js'
import { type Configuration, supersededMessage } from '../memory/configuration.js'
import { type KeeperStore, StoreFailure } from '../memory/keeper-store.js'
import type { Roster, RosterRequest } from '../memory/roster.js'
import type { User, Users } from '../memory/users.js'
import type { Reporter } from '../reporter.js'
import { restoreLeftMs } from '../rules/record.js'
import {
  calmAfterEndMs,
  delay,
  longestWorkMs,
  lookMs,
  minute,
  never,
  now,
  retryWaitMs,
  storeTimeoutMs,
  sweepPatienceMs,
} from '../timing.js'
import type { Deliveries } from './deliveries.js'
import type { CircuitBreaker } from './outage-and-limits.js'
import type { Outcome, Reconciler } from './reconcile.js'
import { type Counted, type OnProgress, Sweep } from './sweep.js'

const tickMs = 1_000
/** If no tick came for this long, the process was suspended, or the machine slept. */
const stoodStillMs = minute
/** Users at once per request in flight, because store operations take most of a reconciliation. */
const usersPerRequest = 4

export interface SweepRequest extends RosterRequest {
  /** Proofs since then are enough; monotonic. */
  readonly provenFrom: number
}

export interface QueueParts {
  readonly concurrency: number
  readonly sweepIntervalMs: number
  readonly users: Users
  readonly store: KeeperStore
  readonly configuration: Configuration
  readonly roster: Roster
  readonly circuit: CircuitBreaker
  readonly deliveries: Deliveries
  readonly reporter: Reporter
  readonly reconciler: Reconciler
}

export class Queue {
  readonly #parts: QueueParts
  readonly #inFlight = new Set<Promise<void>>()
  readonly #background = new Set<Promise<unknown>>()
  /** All calls of {@link Queue.sweep} that have not ended. */
  readonly #sweepCalls = new Set<Promise<unknown>>()
  /** The sweeps that wait for users. */
  readonly #sweeps = new Set<Sweep>()
  /** When each of these is due; monotonic. */
  readonly #dueFrom = { store: never, configuration: never, roster: never }
  /** Users who were due when it was made, the next one last. */
  #batch: User[] = []
  /** Proofs since then are enough for every user. */
  #provenFrom = never
  #isWatching = false
  /** Calls of {@link Queue.stop} in progress. */
  #stops = 0
  /** Set while the watch or a sweep runs. */
  #timer: NodeJS.Timeout | undefined
  /** When the last two ticks came, by the wall clock: the monotonic clock may stop while a machine sleeps. */
  #tickedAt = 0
  #tickedBeforeAt = 0
  #rosterReadSince = never
  #lastEndSince = never
  #blockedSince = Number.POSITIVE_INFINITY
  #workedSince = never

  constructor(parts: QueueParts) {
    this.#parts = parts
  }

  get isWatching(): boolean {
    return this.#isWatching
  }

  /** Whether the process stood still until less than two ticks ago: what arrives now may be old. */
  get hasJustWoken(): boolean {
    return this.#isWatching && Date.now() - this.#tickedBeforeAt > stoodStillMs
  }

  /** Reconciles every user once per interval after this sweep, until {@link Queue.stop}. */
  watch(sweep: () => Promise<unknown>): void {
    this.#isWatching = true
    this.#dueFrom.roster = now() + this.#parts.sweepIntervalMs
    this.#inBackground(sweep)
    this.#startTicking()
  }

  /** Ends the watch and running sweeps; resolves when nothing is in flight. */
  async stop(): Promise<void> {
    this.#stops++
    this.#isWatching = false
    this.#stopTicking()
    this.#endBlockedSweeps()
    await Promise.allSettled([...this.#inFlight, ...this.#sweepCalls, ...this.#background])
    this.#stops--
  }

  /** Makes the user due soon. */
  markDue({ schedule }: User): void {
    schedule.dueFrom = Math.min(schedule.dueFrom, now())
  }

  /** Makes every user due soon. @param provenFrom - users without a proof since then are proven again */
  markAllDue(provenFrom = never): void {
    this.#provenFrom = Math.max(this.#provenFrom, provenFrom)
    for (const user of this.#parts.users.all.values()) this.markDue(user)
  }

  /** The roster may be old: it is read soon, at most every half minute. */
  markRosterDue(): void {
    const dueFrom = this.#rosterReadSince + Math.min(lookMs, this.#parts.sweepIntervalMs)
    this.#dueFrom.roster = Math.min(this.#dueFrom.roster, dueFrom)
  }

  /** One ended subscription suggests more: every user is proven again. */
  #foundEnd(): void {
    const calmMs = Math.max(calmAfterEndMs, this.#parts.sweepIntervalMs)
    const isFirst = now() - this.#lastEndSince >= calmMs
    this.#lastEndSince = now()
    if (isFirst && this.#isWatching) this.markAllDue(now())
  }

  // Sweeps

  /** Reads configuration and roster, and reconciles every user once. */
  sweep(request: SweepRequest, onProgress: OnProgress): Promise<Counted> {
    const call = this.#sweep(request, onProgress).finally(() => {
      this.#sweepCalls.delete(call)
      this.#stopTicking()
    })
    this.#sweepCalls.add(call)
    this.#startTicking()
    return call
  }

  async #sweep(request: SweepRequest, onProgress: OnProgress): Promise<Counted> {
    const obstacle = await this.#prepare(request)
    if (obstacle !== undefined) {
      // Read again as soon as the obstacle is gone.
      this.#dueFrom.roster = now()
      return this.#reportOfNothing(request, obstacle)
    }
    const sweep = new Sweep(this.#parts.users.all.values(), request.provenFrom, onProgress)
    this.#sweeps.add(sweep)
    // Each of these visits all users.
    await this.#pause()
    this.markAllDue(sweep.provenFrom)
    await this.#pause()
    this.#advance()
    await sweep.ended
    this.#sweeps.delete(sweep)
    return sweep.report()
  }

  /** Reads configuration and roster. @returns the reason if no user can be reconciled */
  async #prepare(request: SweepRequest): Promise<Error | undefined> {
    const { configuration } = this.#parts
    const patientUntil = now() + sweepPatienceMs
    while (this.#stops === 0) {
      try {
        await configuration.synchronize()
        if (this.#stops > 0) break
        await this.#readRoster(request)
        const { generation, isSuperseded } = configuration.state
        // A rotation meanwhile has made the generation unknown: once more.
        if (generation !== undefined || isSuperseded) return undefined
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error
        if (now() >= patientUntil) return error
        await delay(1_000)
      }
    }
    return new Error(stoppedMessage)
  }

  /** The report of a sweep that reconciled no user. */
  async #reportOfNothing({ wantsNone = false }: SweepRequest, error: Error): Promise<Counted> {
    const { roster, users } = this.#parts
    const asked = wantsNone || this.#stops > 0 ? undefined : await roster.ask()
    const names = [...(asked ?? users.all.keys())]
    const failed = names.map((username) => ({ username, error }))
    return { wanted: wantsNone ? 0 : names.length, active: 0, created: 0, restored: 0, removed: 0, failed }
  }

  /** Ends sweeps that make no progress. */
  #endBlockedSweeps(): void {
    const { circuit, configuration, store } = this.#parts
    const isBlocked = store.isFailing || circuit.outage !== undefined
    this.#blockedSince = isBlocked ? Math.min(this.#blockedSince, now()) : Number.POSITIVE_INFINITY
    for (const sweep of this.#sweeps) {
      const isHopeless = now() - Math.max(this.#blockedSince, sweep.startedSince) >= sweepPatienceMs
      const blocked = isHopeless ? untriedMessage : undefined
      const reason = configuration.state.isSuperseded ? supersededMessage : blocked
      const message = this.#stops > 0 ? stoppedMessage : reason
      if (message !== undefined) sweep.end(new Error(message, { cause: circuit.outage?.error }))
    }
  }

  // The tick: once a second while the watch or a sweep runs

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
    if (this.hasJustWoken) this.markAllDue(now())
    this.#lookAround()
    this.#advance()
  }

  #advance(): void {
    if (this.#batch.length === 0) this.#collect()
    this.#beginDue()
    this.#endBlockedSweeps()
  }

  #lookAround(): void {
    const { circuit, configuration, deliveries, store, sweepIntervalMs } = this.#parts
    if (store.isFailing) {
      this.#every('store', storeTimeoutMs, () => store.check())
      return
    }
    this.#every('configuration', lookMs, async () => {
      deliveries.reportStrays(circuit.outage === undefined && !configuration.state.isSuperseded)
      await configuration.synchronize()
    })
    if (this.#isWatching) this.#every('roster', sweepIntervalMs, () => this.#readRoster({}))
  }

  #every(name: 'store' | 'configuration' | 'roster', periodMs: number, work: () => Promise<void>): void {
    if (now() < this.#dueFrom[name]) return
    this.#dueFrom[name] = now() + periodMs
    this.#inBackground(work)
  }

  async #readRoster(request: RosterRequest): Promise<void> {
    const { roster, sweepIntervalMs } = this.#parts
    this.#rosterReadSince = now()
    this.#dueFrom.roster = now() + sweepIntervalMs
    try {
      await roster.read(request)
    } catch (error) {
      // Tried again together with a store that failed.
      this.#dueFrom.roster = now() + storeTimeoutMs
      throw error
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

  // Users

  #isDue({ schedule }: User): boolean {
    return !schedule.isInFlight && schedule.dueFrom <= now()
  }

  /** Users without a subscription come first. */
  #collect(): void {
    const due = [...this.#parts.users.all.values()].filter((user) => this.#isDue(user))
    const isMissing = ({ record }: User) => record?.id === undefined
    this.#batch = [...due.filter((user) => !isMissing(user)), ...due.filter(isMissing).reverse()]
  }

  get #isReady(): boolean {
    const { circuit, configuration, store } = this.#parts
    const { generation, isSuperseded } = configuration.state
    if (this.#timer === undefined || this.#stops > 0 || store.isFailing) return false
    if (generation === undefined || isSuperseded) return false
    return circuit.outage === undefined || circuit.isTestDue
  }

  #beginDue(): void {
    const { circuit, concurrency } = this.#parts
    const room = () => (circuit.outage === undefined ? usersPerRequest * concurrency : 1)
    while (this.#isReady && this.#inFlight.size < room()) {
      const user = this.#next()
      if (user === undefined) return
      const visit = this.#work(user).finally(() => {
        this.#inFlight.delete(visit)
        // A test of an outage may have made no call: the next one waits for the next tick.
        if (circuit.outage === undefined) this.#beginDue()
      })
      this.#inFlight.add(visit)
    }
  }

  #next(): User | undefined {
    const { circuit, users } = this.#parts
    for (let user = this.#batch.pop(); user !== undefined; user = this.#batch.pop()) {
      if (users.all.get(user.username) === user && this.#isDue(user)) return user
    }
    return circuit.outage === undefined ? undefined : this.#outageTester()
  }

  /** A user with a call that may be made at once: the call tests the service. */
  #outageTester(): User | undefined {
    for (const user of this.#parts.users.all.values()) {
      const { isWanted, record, schedule } = user
      const mayCall = record === undefined || (!record.claim && restoreLeftMs(record, Date.now()) === 0)
      if (isWanted && mayCall && !schedule.isInFlight) return user
    }
    return undefined
  }

  async #work(user: User): Promise<void> {
    const { circuit, reconciler, users } = this.#parts
    const { schedule } = user
    schedule.isInFlight = true
    if (now() - this.#workedSince > longestWorkMs) await this.#pause()
    // In an outage the reconciliation must make a call.
    const provenFrom = circuit.outage === undefined ? this.#provenFrom : now()
    // A change during the reconciliation may come too late for it: then the user is due again at once.
    schedule.dueFrom = Number.POSITIVE_INFINITY
    const reconciled = await reconciler.reconcile(user, provenFrom)
    const { gaps, outcome } = reconciled
    schedule.isInFlight = false
    schedule.dueFrom = Math.min(schedule.dueFrom, now() + this.#noteOutcome(user, outcome))
    for (const sweep of this.#sweeps) sweep.note(user, reconciled, schedule.dueFrom - now())
    if (gaps.some(({ cause }) => cause === 'ended')) this.#foundEnd()
    if (outcome.kind === 'gone') this.markRosterDue()
    if (outcome.kind === 'removed' && !user.isWanted) users.forget(user)
  }

  /** One pause for all waiting users: with one pause each, they would run one after the other without a pause. */
  readonly #pause = singleFlight(async () => {
    await delay(0)
    this.#workedSince = now()
  })

  /** Counts failures. @returns how long the user can wait now, in ms */
  #noteOutcome({ schedule, username }: User, outcome: Outcome): number {
    if (outcome.kind !== 'failed') {
      if (!['claimed', 'held', 'gone'].includes(outcome.kind)) schedule.failures = 0
      const isAtRest = outcome.kind === 'done' || outcome.kind === 'conflict'
      return isAtRest ? Math.max(1_000, outcome.againMs) : outcome.againMs
    }
    const { log } = this.#parts.reporter
    const { againMs, failure } = outcome
    const failures = ++schedule.failures
    const fields = { username, failures, err: failure.error }
    if (failure.kind === 'BUG') log('error', { event: 'reconcile.broken', ...fields }, bugMessage)
    else log('warn', { event: 'subscription.failed', ...fields }, failureMessage)
    return againMs ?? retryWaitMs(failures, failure.retryAfterMs)
  }
}

const stoppedMessage = 'The keeper was stopped before the sweep came to this user.'
const untriedMessage = 'This user was not tried: the service or the store fails. The next sweep tries again.'
const bugMessage = 'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
const failureMessage = 'A user could not be kept subscribed, and is tried again'
