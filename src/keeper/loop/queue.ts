/**
 * The scheduler: knows when each user is due, what is in flight, and how often it failed. A sweep makes all users due,
 * waits and counts.
 */

import type { Configuration } from '../memory/configuration.js'
import type { KeeperStore } from '../memory/keeper-store.js'
import type { User, Users } from '../memory/users.js'
import type { Reporter } from '../reporter.js'
import { delay, never, now, retryWaitMs, sweepPatienceMs } from '../timing.js'
import type { SweepProgress, SweepReport } from '../types.js'
import type { CircuitBreaker } from './outage-and-limits.js'
import type { Outcome, Reconciled } from './outcome.js'
import { Sweep } from './sweep.js'

/** Users at once per request in flight, because store operations take most of a reconciliation. */
const usersPerRequest = 4
/** The longest work without a pause for the process' timers and sockets. */
const longestWorkMs = 20

interface Entry {
  /** When the user is to be reconciled; monotonic. */
  dueFrom: number
  isInFlight: boolean
  /** In a row. */
  failures: number
}

export interface QueueParts {
  readonly concurrency: number
  readonly users: Users
  readonly store: KeeperStore
  readonly configuration: Configuration
  readonly circuit: CircuitBreaker
  /** Brings one user nearer to what is wanted. Never rejects. */
  readonly reconcile: (user: User, provenFrom: number) => Promise<Reconciled>
  readonly reporter: Reporter
}

export class Queue {
  readonly #parts: QueueParts
  readonly #entries = new Map<User, Entry>()
  readonly #inFlight = new Set<Promise<void>>()
  readonly #sweeps = new Set<Sweep>()
  /** Users who are due, the next one last. */
  #ready: User[] = []
  /** Proofs since then are enough for every user. */
  #provenFrom = never
  #isStopped = true
  #blockedSince: number | undefined
  #workedSince = never
  #pausing: Promise<void> | undefined

  constructor(parts: QueueParts) {
    this.#parts = parts
  }

  hasFailed(user: User): boolean {
    return (this.#entries.get(user)?.failures ?? 0) > 0
  }

  /** Makes the user due soon. */
  markDue(user: User): void {
    const entry = this.#entryOf(user)
    entry.dueFrom = Math.min(entry.dueFrom, now())
  }

  /** Makes every user due soon. @param provenFrom - users without a proof since then are proven again */
  markAllDue(provenFrom: number): void {
    this.#provenFrom = Math.max(this.#provenFrom, provenFrom)
    for (const user of this.#parts.users.all()) this.markDue(user)
  }

  /** Every user is reconciled once. */
  async sweep(
    provenFrom: number,
    onProgress: (progress: SweepProgress) => void,
  ): Promise<Omit<SweepReport, 'problems'>> {
    const sweep = new Sweep(this.#parts.users.all(), provenFrom, onProgress)
    this.#sweeps.add(sweep)
    this.markAllDue(provenFrom)
    this.tick()
    await sweep.ended
    this.#sweeps.delete(sweep)
    return sweep.report()
  }

  /** Once a second: starts due users, and stops waiting for slow ones. */
  tick(): void {
    this.#isStopped = false
    if (this.#ready.length === 0) this.#collect()
    this.#begin()
    this.#review()
  }

  /** Starts no further user until the next tick; resolves when nothing is in flight. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#ready = []
    for (const sweep of this.#sweeps) sweep.review(new Error(stoppedMessage))
    await Promise.all(this.#inFlight)
  }

  #entryOf(user: User): Entry {
    const known = this.#entries.get(user)
    if (known !== undefined) return known
    const entry = { dueFrom: never, isInFlight: false, failures: 0 }
    this.#entries.set(user, entry)
    return entry
  }

  /** Users without a subscription come first. */
  #collect(): void {
    const missing: User[] = []
    for (const user of this.#parts.users.all()) {
      if (!this.#isDue(user)) continue
      if (user.record?.id === undefined) missing.push(user)
      else this.#ready.push(user)
    }
    this.#ready = this.#ready.concat(missing.reverse())
  }

  #isDue(user: User): boolean {
    const { dueFrom, isInFlight } = this.#entryOf(user)
    return !isInFlight && dueFrom <= now()
  }

  get #isReady(): boolean {
    const { circuit, configuration, store } = this.#parts
    const { generation, isSuperseded } = configuration
    if (this.#isStopped || store.isFailing || generation === undefined || isSuperseded) return false
    return !circuit.isOpen || circuit.isTestDue
  }

  #begin(): void {
    const { circuit, concurrency } = this.#parts
    while (this.#isReady && this.#inFlight.size < (circuit.isOpen ? 1 : usersPerRequest * concurrency)) {
      const user = this.#next()
      if (user === undefined) return
      const entry = this.#entryOf(user)
      entry.isInFlight = true
      const visit = this.#reconcile(user, entry).finally(() => {
        this.#inFlight.delete(visit)
        // A test of an outage may have made no call: the next one waits for the next tick.
        if (!this.#parts.circuit.isOpen) this.#begin()
      })
      this.#inFlight.add(visit)
    }
  }

  /** In an outage any user can test the service, except one whose last call may still take effect. */
  #next(): User | undefined {
    const { circuit, users } = this.#parts
    for (let user = this.#ready.pop(); user !== undefined; user = this.#ready.pop()) {
      if (users.get(user.username) === user && this.#isDue(user)) return user
    }
    if (!circuit.isOpen) return undefined
    for (const user of users.all()) {
      const mayCall = user.isWanted && user.record?.claim === undefined && now() >= user.restorableFrom
      if (mayCall && !this.#entryOf(user).isInFlight) return user
    }
    return undefined
  }

  async #reconcile(user: User, entry: Entry): Promise<void> {
    const { circuit, reconcile } = this.#parts
    if (now() - this.#workedSince > longestWorkMs) await this.#pause()
    // In an outage the reconciliation must make a call.
    const provenFrom = circuit.isOpen ? now() : this.#provenFrom
    entry.dueFrom = Number.POSITIVE_INFINITY
    const { outcome, ...achieved } = await reconcile(user, provenFrom)
    entry.isInFlight = false
    // A change during the reconciliation may have come too late for it.
    entry.dueFrom = Math.min(entry.dueFrom, now() + this.#waitMs(user, entry, outcome))
    for (const sweep of this.#sweeps) sweep.note(user, outcome, achieved)
    if (outcome.kind === 'removed' && !user.isWanted) {
      this.#parts.users.remove(user)
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
  #waitMs(user: User, entry: Entry, outcome: Outcome): number {
    if (outcome.kind === 'failed') return this.#waitAfterFailureMs(user, entry, outcome)
    if (outcome.kind === 'done' || outcome.kind === 'conflict' || outcome.kind === 'waiting')
      entry.failures = 0
    return outcome.kind === 'done' || outcome.kind === 'conflict'
      ? Math.max(1_000, outcome.againMs)
      : outcome.againMs
  }

  #waitAfterFailureMs(
    { username }: User,
    entry: Entry,
    { againMs, failure }: Extract<Outcome, { kind: 'failed' }>,
  ): number {
    const { log } = this.#parts.reporter
    const failures = ++entry.failures
    const fields = { username, failures, err: failure.error }
    if (failure.kind === 'BUG') {
      const message =
        'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
      log('error', { event: 'reconcile.broken', ...fields }, message)
    } else {
      const message = 'A user could not be kept subscribed, and is tried again'
      log('warn', { event: 'subscription.failed', ...fields }, message)
    }
    return againMs ?? retryWaitMs(failures, failure.retryAfterMs)
  }

  #review(): void {
    const { circuit, configuration, store } = this.#parts
    const isBlocked = store.isFailing || configuration.isSuperseded || circuit.isOpen
    this.#blockedSince = isBlocked ? (this.#blockedSince ?? now()) : undefined
    if (this.#sweeps.size === 0) return
    const isHopeless = configuration.isSuperseded || now() - (this.#blockedSince ?? now()) >= sweepPatienceMs
    const reason = new Error(configuration.isSuperseded ? supersededMessage : untriedMessage, {
      cause: circuit.error,
    })
    for (const sweep of this.#sweeps) sweep.review(isHopeless ? reason : undefined)
  }
}

const stoppedMessage = 'The keeper was stopped before the sweep came to this user.'
const untriedMessage = 'This user was not tried: the service or the store fails. The next sweep tries again.'
const supersededMessage =
  'Another process runs a newer configuration: it subscribes this user, and this process sends nothing.'
