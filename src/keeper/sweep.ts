/** A sweep: one reconciliation of everybody who is wanted, and of everybody who is wanted no longer, at full rate. */
import { channelFor, traced } from '../shared/tracing.js'
import { isPassing } from './call.js'
import type { NewestConfiguration } from './configuration.js'
import { type KeeperStore, KeyFailure, StoreUnavailable } from './keeper-store.js'
import type { CircuitBreaker } from './limiter.js'
import type { Outcome, Reconciler } from './reconciler.js'
import type { End } from './reconciliation.js'
import { isSettled, isThere } from './record.js'
import type { Reporter } from './reporter.js'
import type { Roster, RosterRequest } from './roster.js'
import { claimPatienceMs, delay, sweepPatienceMs } from './timing.js'
import type { SweepProgress, SweepReport } from './types.js'
import type { Achieved, User, Users } from './users.js'

/** What a sweep is to do. */
export interface SweepRequest extends RosterRequest {
  /** A proof that was sent since then is enough; monotonic. Default: when the sweep begins. */
  readonly provenSince?: number
  readonly onProgress?: ((progress: SweepProgress) => unknown) | undefined
  /** Requests of the same name share a sweep that has not begun yet. Default: the sweep is not shared. */
  readonly sharedAs?: string
}

export interface SweepControl {
  readonly onProgress: (progress: SweepProgress) => void
  /** Whether to begin with no further user. */
  readonly isOver: () => boolean
}

export interface SweepParts {
  readonly name: string
  readonly concurrency: number
  readonly store: KeeperStore
  readonly users: Users
  readonly newest: NewestConfiguration
  readonly roster: Roster
  readonly reconciler: Reconciler
  readonly circuit: CircuitBreaker
  readonly reporter: Reporter
}

/** Store operations take most of a reconciliation: so many users at once for each request in flight. */
export const usersPerRequest = 4
/** How often a user who fails is tried again, a second or two later. */
const attemptsPerUser = 3

const channel = channelFor('sweep')

export class Sweep {
  readonly #parts: SweepParts
  readonly #request: SweepRequest
  readonly #control: SweepControl
  readonly #provenSince: number
  readonly #counts = { created: 0, restored: 0, removed: 0 }
  readonly #failed: { username: string; error: unknown }[] = []
  #active = 0
  /** Until when the sweep waits for the service; monotonic. */
  #patientUntil: number | undefined
  /** Users that another process has claimed, and until when the sweep waits for each. */
  readonly #claimed = new Map<User, number>()

  constructor(parts: SweepParts, request: SweepRequest, control: SweepControl) {
    this.#parts = parts
    this.#request = request
    this.#provenSince = request.provenSince ?? performance.now()
    this.#control = control
  }

  /** Never rejects. */
  run(): Promise<SweepReport> {
    const { name, reporter } = this.#parts
    const startedSince = performance.now()
    return traced<object, SweepReport>(
      channel,
      () => ({ name }),
      async (context) => {
        const problem = await this.#prepare()
        const report =
          problem === undefined ? await this.#reconcileAll() : await this.#reportOfNothing(problem)
        const { wanted, active, created, restored, removed } = report
        const counts = { wanted, created, restored, removed, failed: report.failed.length }
        if (context !== undefined) Object.assign(context, counts)
        const fields = { ...counts, active, durationMs: Math.round(performance.now() - startedSince) }
        reporter.log('info', { event: 'sweep.done', ...fields }, 'A sweep is done')
        return report
      },
    )
  }

  /** @returns why nobody can be reconciled, or `undefined` */
  async #prepare(): Promise<Error | undefined> {
    const { newest, roster } = this.#parts
    const { isOver } = this.#control
    const patientUntil = performance.now() + sweepPatienceMs
    for (;;) {
      try {
        await newest.refresh()
        if (newest.isSuperseded) return new Error(supersededMessage)
        if (!isOver()) await roster.read(this.#request)
        return undefined
      } catch (error) {
        if (!(error instanceof StoreUnavailable) && !(error instanceof KeyFailure)) throw error
        if (performance.now() >= patientUntil || isOver()) return new Error(storeMessage, { cause: error })
        await delay(1_000)
      }
    }
  }

  async #reconcileAll(): Promise<SweepReport> {
    const { concurrency, users } = this.#parts
    const { isOver, onProgress } = this.#control
    const queue = unmetFirst(users)
    const total = queue.length
    const wanted = queue.filter(({ isWanted }) => isWanted).length
    let next = 0
    let done = 0
    const work = async () => {
      while (next < queue.length) {
        const user = queue[next++]
        if (user === undefined) continue
        if (isOver()) {
          this.#failed.push({ username: user.username, error: new Error(stoppedMessage) })
          continue
        }
        const outcome = await this.#reconcilePatiently(user)
        if (outcome === 'later') {
          queue.push(user)
          continue
        }
        this.#count(user, outcome)
        onProgress({ done: ++done, total, ...this.#counts, failed: this.#failed.length })
      }
    }
    await Promise.all(Array.from({ length: Math.min(total, usersPerRequest * concurrency) }, work))
    return this.#report(wanted, this.#active)
  }

  /** @returns `later`: everybody else comes first */
  async #reconcilePatiently(user: User): Promise<Outcome | 'later'> {
    const { circuit, reconciler } = this.#parts
    const { isOver } = this.#control
    const done = { isCreated: false, isRestored: false }
    for (let attempt = 1; ; ) {
      // What the schedule does for this user meanwhile counts for this sweep.
      while (user.reconciling !== undefined) note(done, await user.reconciling)
      const { end, ...achieved } = await reconciler.reconcile(user, {
        kind: 'sweep',
        provenSince: this.#provenSince,
      })
      note(done, achieved)
      const outcome = { end, ...done }
      if (isOver()) return outcome
      if (end.kind === 'failed') {
        const mayPass = end.notBeforeFrom === undefined && isPassing(end.failure)
        if (!mayPass || attempt === attemptsPerUser) return outcome
        await delay(1_000 * attempt++)
      } else if (end.kind === 'held') {
        const now = performance.now()
        this.#patientUntil ??= now + sweepPatienceMs
        if (now >= this.#patientUntil) return outcome
        await delay(Math.min(5_000, Math.max(100, circuit.nextTestFrom - now)))
      } else if (end.kind === 'claimed') {
        const patientUntil = this.#claimed.get(user)
        if (patientUntil === undefined) {
          this.#claimed.set(user, performance.now() + claimPatienceMs)
          if (!done.isCreated && !done.isRestored) return 'later'
        } else if (performance.now() >= patientUntil) return outcome
        await delay(Math.max(1_000, end.dueFrom - performance.now()))
      } else return outcome
    }
  }

  #count(user: User, { end, isCreated, isRestored }: Outcome): void {
    if (isCreated) this.#counts.created++
    if (isRestored) this.#counts.restored++
    const isSubscribed = user.isWanted && isSettled(user.present)
    if (end.kind === 'removed') this.#counts.removed++
    else if (end.kind === 'settled' || (end.kind === 'waiting' && isSubscribed)) {
      if (user.isWanted) this.#active++
    } else this.#failed.push({ username: user.username, error: errorOf(end) })
  }

  #report(wanted: number, active: number): SweepReport {
    const problems = this.#parts.reporter.problems.list()
    return { wanted, active, ...this.#counts, failed: this.#failed, problems }
  }

  /** Of a sweep that reconciled nobody: who is wanted and not subscribed, as far as this process knows. */
  async #reportOfNothing(error: Error): Promise<SweepReport> {
    const { roster, users } = this.#parts
    const { wantsNobody = false } = this.#request
    const asked = wantsNobody ? undefined : await roster.ask()
    const names = asked ?? new Set(Array.from(users, ({ username }) => username))
    for (const username of names) {
      const user = users.get(username)
      const isMissing = wantsNobody || user === undefined || !isThere(user.present)
      if (isMissing || this.#parts.store.isFailing) this.#failed.push({ username, error })
    }
    return this.#report(wantsNobody ? 0 : names.size, names.size - this.#failed.length)
  }
}

/** Users who wait for a subscription, or for the end of one, come before those who have theirs. */
function unmetFirst(users: Users): User[] {
  const unmet: User[] = []
  const met: User[] = []
  for (const user of users) (user.isWanted && isThere(user.present) ? met : unmet).push(user)
  return unmet.concat(met)
}

function note(done: Achieved, { isCreated, isRestored }: Achieved): void {
  if (isCreated) done.isCreated = true
  if (isRestored) done.isRestored = true
}

/** What stands between a user and a subscription, or the end of one. */
function errorOf(end: End): unknown {
  switch (end.kind) {
    case 'failed':
      return end.failure.error
    case 'held':
      return end.error ?? new Error(untriedMessage)
    case 'conflict':
      return new Error('Another subscription for this user, type and callback URL is in the way.')
    case 'claimed':
      return new Error(claimedMessage)
    case 'superseded':
      return new Error(supersededMessage)
    case 'waiting': {
      const seconds = Math.max(0, Math.ceil((end.dueFrom - performance.now()) / 1_000))
      return new Error(
        `Restored before, and no delivery has come since: the next restore is tried in ${seconds} s.`,
      )
    }
    default:
      return new Error(untriedMessage)
  }
}

const stoppedMessage = 'The keeper was stopped before the sweep came to this user.'
const untriedMessage = 'This user was not tried: the next sweep comes back to them.'
const storeMessage = 'The store fails: nothing is sent until it works again.'
const supersededMessage =
  'Another process runs a newer configuration: it subscribes this user, and this process sends nothing.'
const claimedMessage =
  'Another process is at it, or an earlier request was not answered and may still take effect: a sweep in two minutes ' +
  'settles that.'
