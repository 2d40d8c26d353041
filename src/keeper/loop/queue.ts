/**
 * The owner of time: knows when each user, the roster and the configuration are due, what is in flight, and how often it
 * failed. A sweep makes all users due, waits and counts.
 */
import { type Configuration, supersededMessage } from '../memory/configuration.js'
import { type KeeperStore, StoreFailure } from '../memory/keeper-store.js'
import type { Roster, RosterRequest } from '../memory/roster.js'
import type { User, Users } from '../memory/users.js'
import type { Reporter } from '../reporter.js'
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
import type { Outcome, Reconciled } from './call.js'
import type { Deliveries } from './deliveries.js'
import type { CircuitBreaker } from './outage-and-limits.js'
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

/** The queue's knowledge of one user. */
interface Entry {
  /** When the user is to be reconciled; monotonic. */
  dueFrom: number
  isInFlight: boolean
  /** In a row. */
  failures: number
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
  /** Reconciles one user. Never rejects. */
  readonly reconcile: (user: User, provenFrom: number) => Promise<Reconciled>
}

export class Queue {
  readonly #parts: QueueParts
  readonly #entries = new Map<User, Entry>()
  readonly #inFlight = new Set<Promise<void>>()
  readonly #sweeps = new Set<Sweep>()
  /** All calls of {@link Queue.sweep} that have not ended. */
  readonly #running = new Set<Promise<unknown>>()
  /** When each of these is due; monotonic. */
  readonly #dueFrom = { check: never, look: never, roster: never }
  /** Users who are due, the next one last. */
  #ready: User[] = []
  /** Proofs since then are enough for every user. */
  #provenFrom = never
  #isWatching = false
  /** Calls of {@link Queue.stop} in progress. */
  #stops = 0
  /** The reasons to tick: the watch, and sweeps. */
  #holders = 0
  #timer: NodeJS.Timeout | undefined
  /** When the last two ticks came, by the wall clock: the monotonic clock may stop while a machine sleeps. */
  #tickedAt = 0
  #tickedBeforeAt = 0
  #rosterReadSince = never
  #lastEndSince = never
  #blockedSince: number | undefined
  #workedSince = never
  #pausing: Promise<void> | undefined

  constructor(parts: QueueParts) {
    this.#parts = parts
  }

  get isWatching(): boolean {
    return this.#isWatching
  }

  /** Whether the process stood still until less than two ticks ago: what arrives now may be old. */
  get hasStoodStill(): boolean {
    return this.#isWatching && Date.now() - this.#tickedBeforeAt > stoodStillMs
  }

  hasFailed(user: User): boolean {
    return (this.#entries.get(user)?.failures ?? 0) > 0
  }

  /** Reconciles every user once per interval after this sweep, until {@link Queue.stop}. */
  watch(sweep: () => Promise<unknown>): void {
    this.#isWatching = true
    this.#dueFrom.roster = now() + this.#parts.sweepIntervalMs
    this.#inBackground(sweep)
    this.#hold()
  }

  /** Ends the watch and running sweeps; resolves when nothing is in flight. */
  async stop(): Promise<void> {
    this.#stops++
    if (this.#isWatching) this.#release()
    this.#isWatching = false
    this.#review()
    await Promise.allSettled([...this.#inFlight, ...this.#running])
    this.#stops--
  }

  /** Makes the user due soon. */
  markDue(user: User): void {
    const entry = this.#entryOf(user)
    entry.dueFrom = Math.min(entry.dueFrom, now())
  }

  /** Makes every user due soon. @param provenFrom - users without a proof since then are proven again */
  markAllDue(provenFrom: number): void {
    this.#provenFrom = Math.max(this.#provenFrom, provenFrom)
    for (const user of this.#parts.users.all.values()) this.markDue(user)
  }

  /** The roster may be old: it is read soon, at most every half minute. */
  markRosterDue(): void {
    const dueFrom = this.#rosterReadSince + Math.min(lookMs, this.#parts.sweepIntervalMs)
    this.#dueFrom.roster = Math.min(this.#dueFrom.roster, dueFrom)
  }

  /** One ended subscription suggests more: every user is proven again. */
  foundEnd(): void {
    const calmMs = Math.max(calmAfterEndMs, this.#parts.sweepIntervalMs)
    const isFirst = now() - this.#lastEndSince >= calmMs
    this.#lastEndSince = now()
    if (isFirst && this.#isWatching) this.markAllDue(now())
  }

  // Sweeps

  /** Reads configuration and roster, and reconciles every user once. */
  sweep(request: SweepRequest, onProgress: OnProgress): Promise<Counted> {
    const running = this.#sweep(request, onProgress).finally(() => this.#running.delete(running))
    this.#running.add(running)
    return running
  }

  async #sweep(request: SweepRequest, onProgress: OnProgress): Promise<Counted> {
    this.#hold()
    try {
      const problem = await this.#prepare(request)
      if (problem !== undefined) {
        this.#dueFrom.roster = now()
        return await this.#reportOfNothing(request, problem)
      }
      const sweep = new Sweep(this.#parts.users.all.values(), request.provenFrom, onProgress)
      this.#sweeps.add(sweep)
      await this.#pause()
      this.markAllDue(sweep.provenFrom)
      await this.#pause()
      this.#advance()
      await sweep.ended
      this.#sweeps.delete(sweep)
      return sweep.report()
    } finally {
      this.#release()
    }
  }

  /** Reads configuration and roster. @returns the reason if no user can be reconciled */
  async #prepare(request: SweepRequest): Promise<Error | undefined> {
    const { configuration } = this.#parts
    const patientUntil = now() + sweepPatienceMs
    for (;;) {
      try {
        await configuration.look()
        if (this.#stops === 0) await this.#readRoster(request)
        if (this.#stops > 0) return new Error(stoppedMessage)
        // Unless `rotateParameters` was called meanwhile.
        const { generation, isSuperseded } = configuration.state
        if (generation !== undefined || isSuperseded) return undefined
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error
        if (now() >= patientUntil || this.#stops > 0) return new Error(storeMessage, { cause: error })
        await delay(1_000)
      }
    }
  }

  /** The report of a sweep that reconciled no user. */
  async #reportOfNothing({ wantsNone = false }: SweepRequest, error: Error): Promise<Counted> {
    const { roster, users } = this.#parts
    const names = [...((wantsNone ? undefined : await roster.ask()) ?? users.all.keys())]
    const failed = names.map((username) => ({ username, error }))
    return { wanted: wantsNone ? 0 : names.length, active: 0, created: 0, restored: 0, removed: 0, failed }
  }

  /** Ends sweeps that make no progress. */
  #review(): void {
    const { circuit, configuration, store } = this.#parts
    const isBlocked = store.isFailing || circuit.outage !== undefined
    this.#blockedSince = isBlocked ? (this.#blockedSince ?? now()) : undefined
    const isHopeless = isBlocked && now() - (this.#blockedSince ?? 0) >= sweepPatienceMs
    const message = configuration.state.isSuperseded ? supersededMessage : isHopeless ? untriedMessage : ''
    const reason = this.#stops > 0 ? stoppedMessage : message
    if (reason === '') return
    for (const sweep of this.#sweeps) sweep.end(new Error(reason, { cause: circuit.outage?.error }))
  }

  // The tick: once a second while the watch or a sweep runs

  #hold(): void {
    if (this.#holders++ > 0) return
    this.#tickedAt = Date.now()
    this.#tick()
  }

  #release(): void {
    if (--this.#holders === 0) clearTimeout(this.#timer)
  }

  #tick(): void {
    this.#timer = setTimeout(() => this.#tick(), tickMs)
    this.#tickedBeforeAt = this.#tickedAt
    this.#tickedAt = Date.now()
    if (this.hasStoodStill) this.markAllDue(now())
    this.#lookAround()
    this.#advance()
  }

  #advance(): void {
    if (this.#ready.length === 0) this.#collect()
    this.#beginDue()
    this.#review()
  }

  #lookAround(): void {
    const { configuration, deliveries, store, sweepIntervalMs } = this.#parts
    if (store.isFailing) {
      this.#every('check', storeTimeoutMs, () => store.check())
      return
    }
    this.#every('look', lookMs, () => {
      deliveries.review()
      return configuration.look()
    })
    if (this.#isWatching) this.#every('roster', sweepIntervalMs, () => this.#readRoster({}))
  }

  #every(name: 'check' | 'look' | 'roster', periodMs: number, work: () => Promise<void>): void {
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
    work().catch((err: unknown) => {
      if (err instanceof StoreFailure) return
      const message = 'A bug of the keeper stopped some work: please report it'
      this.#parts.reporter.log('error', { event: 'keeper.broken', err }, message)
    })
  }

  // Users

  #entryOf(user: User): Entry {
    const known = this.#entries.get(user)
    if (known !== undefined) return known
    const entry = { dueFrom: never, isInFlight: false, failures: 0 }
    this.#entries.set(user, entry)
    return entry
  }

  #isDue(user: User): boolean {
    const { dueFrom, isInFlight } = this.#entryOf(user)
    return !isInFlight && dueFrom <= now()
  }

  /** Users without a subscription come first. */
  #collect(): void {
    const due = [...this.#parts.users.all.values()].filter((user) => this.#isDue(user))
    const isMissing = ({ record }: User) => record?.id === undefined
    this.#ready = [...due.filter((user) => !isMissing(user)), ...due.filter(isMissing).reverse()]
  }

  get #isReady(): boolean {
    const { circuit, configuration, store } = this.#parts
    const { generation, isSuperseded } = configuration.state
    if (this.#holders === 0 || this.#stops > 0 || store.isFailing) return false
    if (generation === undefined || isSuperseded) return false
    return circuit.outage === undefined || circuit.isTestDue
  }

  #beginDue(): void {
    const { circuit, concurrency } = this.#parts
    const room = () => (circuit.outage === undefined ? usersPerRequest * concurrency : 1)
    while (this.#isReady && this.#inFlight.size < room()) {
      const user = this.#next()
      if (user === undefined) return
      const visit = this.#reconcile(user).finally(() => {
        this.#inFlight.delete(visit)
        // A test of an outage may have made no call: the next one waits for the next tick.
        if (circuit.outage === undefined) this.#beginDue()
      })
      this.#inFlight.add(visit)
    }
  }

  /** In an outage any user can test the service, except one whose last call may still take effect. */
  #next(): User | undefined {
    const { circuit, users } = this.#parts
    for (let user = this.#ready.pop(); user !== undefined; user = this.#ready.pop()) {
      if (users.all.get(user.username) === user && this.#isDue(user)) return user
    }
    if (circuit.outage === undefined) return undefined
    for (const user of users.all.values()) {
      const mayCall = user.isWanted && user.record?.claim === undefined && now() >= user.restorableFrom
      if (mayCall && !this.#entryOf(user).isInFlight) return user
    }
    return undefined
  }

  async #reconcile(user: User): Promise<void> {
    const { circuit, reconcile, users } = this.#parts
    const entry = this.#entryOf(user)
    entry.isInFlight = true
    if (now() - this.#workedSince > longestWorkMs) await this.#pause()
    // In an outage the reconciliation must make a call.
    const provenFrom = circuit.outage === undefined ? this.#provenFrom : now()
    entry.dueFrom = Number.POSITIVE_INFINITY
    const reconciled = await reconcile(user, provenFrom)
    const { outcome } = reconciled
    entry.isInFlight = false
    // A change during the reconciliation may have come too late for it.
    entry.dueFrom = Math.min(entry.dueFrom, now() + this.#waitMs(user, entry, outcome))
    for (const sweep of this.#sweeps) sweep.note(user, reconciled, entry.dueFrom - now())
    if (outcome.kind === 'removed' && !user.isWanted) {
      users.forget(user)
      this.#entries.delete(user)
    }
  }

  /** One pause for all waiting users: with one pause each, they would run one after the other without a pause. */
  #pause(): Promise<void> {
    this.#pausing ??= delay(0).then(() => {
      this.#workedSince = now()
      this.#pausing = undefined
    })
    return this.#pausing
  }

  /** How long the user can wait now, in ms. */
  #waitMs({ username }: User, entry: Entry, outcome: Outcome): number {
    if (outcome.kind !== 'failed') {
      if (outcome.kind !== 'claimed' && outcome.kind !== 'held') entry.failures = 0
      const isAtRest = outcome.kind === 'done' || outcome.kind === 'conflict'
      return isAtRest ? Math.max(1_000, outcome.againMs) : outcome.againMs
    }
    const { log } = this.#parts.reporter
    const { againMs, failure } = outcome
    const failures = ++entry.failures
    const fields = { username, failures, err: failure.error }
    if (failure.kind === 'BUG') log('error', { event: 'reconcile.broken', ...fields }, bugMessage)
    else log('warn', { event: 'subscription.failed', ...fields }, failureMessage)
    return againMs ?? retryWaitMs(failures, failure.retryAfterMs)
  }
}

const stoppedMessage = 'The keeper was stopped before the sweep came to this user.'
const untriedMessage = 'This user was not tried: the service or the store fails. The next sweep tries again.'
const storeMessage = 'The store fails: nothing is sent until it works again.'
const bugMessage = 'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
const failureMessage = 'A user could not be kept subscribed, and is tried again'
