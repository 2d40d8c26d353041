/** Reconciles users: one reconciliation of a user at a time, and what follows from how it ended. */
import { type End, type Purpose, Reconciliation, type ReconciliationParts } from './reconciliation.js'
import { callTimeoutMs, minute, retryWaitMs } from './timing.js'
import type { Achieved, User } from './users.js'

export interface Outcome extends Achieved {
  readonly end: End
}

export class Reconciler {
  readonly #parts: ReconciliationParts

  constructor(parts: ReconciliationParts) {
    this.#parts = parts
  }

  /** Reconciles a user that is not being reconciled. Never rejects. */
  reconcile(user: User, purpose: Purpose): Promise<Outcome> {
    const reconciliation = new Reconciliation(this.#parts, user, purpose)
    user.isDueAgain = false
    const reconciling = reconciliation
      .run()
      .then((end) => {
        this.#conclude(user, end)
        // What has come up meanwhile may have come too late for this reconciliation.
        if (user.isDueAgain && end.kind !== 'failed') user.makeDue()
        return { end, ...reconciliation.achieved }
      })
      .finally(() => {
        user.reconciling = undefined
      })
    user.reconciling = reconciling
    return reconciling
  }

  /** When the user is due next, and what is reported. */
  #conclude(user: User, end: End): void {
    const { records, sweepIntervalMs } = this.#parts
    const now = performance.now()
    user.isQuiet = end.kind === 'settled'
    switch (end.kind) {
      case 'settled':
        records.recover(user)
        user.dueFrom = this.#nextProofFrom(user)
        break
      case 'removed':
        this.#remove(user)
        break
      case 'conflict':
        this.#noteConflict(user)
        user.dueFrom = now + sweepIntervalMs
        break
      case 'waiting':
        user.failures = 0
        user.hasConflict = false
        // A delivery at another process ends the wait.
        user.dueFrom = Math.min(end.dueFrom, now + sweepIntervalMs)
        break
      case 'claimed':
        user.dueFrom = end.dueFrom
        break
      case 'tried':
        this.#adoptTrial(user)
        break
      case 'held':
        user.dueFrom = now
        break
      case 'superseded':
        user.dueFrom = now + minute
        break
      default:
        this.#noteFailure(user, end)
    }
  }

  /** The process that proved a user last is due first, the others a little later. */
  #nextProofFrom(user: User): number {
    const { records, sweepIntervalMs } = this.#parts
    const now = performance.now()
    const provenBy = user.record?.provenBy
    const laterMs = provenBy === undefined || provenBy === records.by ? 0 : this.#laterMs()
    const proofFrom = Math.max(now + 1_000, user.provenSince + sweepIntervalMs + laterMs)
    const { restorableFrom } = user
    // If a restore is allowed about when the proof is due, one request does both. The margin: an interval counts from a
    // request, and the wait for a restore from its answer.
    const isRestorableSoon = now < restorableFrom && restorableFrom <= proofFrom + callTimeoutMs
    return isRestorableSoon ? restorableFrom : proofFrom
  }

  #laterMs(): number {
    return (Math.random() * this.#parts.sweepIntervalMs) / 15
  }

  #remove(user: User): void {
    const { reporter, store, users } = this.#parts
    const { username } = user
    users.remove(user)
    reporter.problems.removeUser(username)
    store.resolve(user.key)
    const message = 'Nothing of a user who left the roster is left'
    reporter.log('debug', { event: 'user.removed', username }, message)
  }

  #noteConflict(user: User): void {
    const { username } = user
    user.failures = 0
    user.hasConflict = true
    const message = (userCount: number) => conflictMessage(userCount, username)
    this.#parts.reporter.problems.addUser('CONFLICT', username, message)
  }

  #noteFailure(user: User, { failure, notBeforeFrom = 0 }: Extract<End, { kind: 'failed' }>): void {
    const { reporter, sweepIntervalMs } = this.#parts
    const { error, kind, retryAfterMs } = failure
    const { username } = user
    const failures = ++user.failures
    const isLasting = kind === 'INVALID' || kind === 'BUG'
    const waitMs = isLasting ? sweepIntervalMs : retryWaitMs(failures, retryAfterMs)
    user.dueFrom = Math.max(performance.now() + waitMs, notBeforeFrom)
    const fields = { username, failures, err: error }
    if (kind === 'BUG') {
      const message =
        'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
      reporter.log('error', { event: 'reconcile.broken', ...fields }, message)
      return
    }
    const message = 'A user could not be kept subscribed, and is tried again'
    reporter.log('warn', { event: 'subscription.failed', ...fields }, message)
    if (kind !== 'INVALID') return
    reporter.problems.addUser('ROSTER', username, (count) => invalidMessage(count, username, error), error)
  }

  /** What another process has tried, as its record says, counts for this one, too. */
  #adoptTrial(user: User): void {
    const { failures = 0, triedAt = 0 } = user.record ?? {}
    if (failures === 0) this.#noteConflict(user)
    else {
      user.failures = failures
      user.hasConflict = false
    }
    const waitMs = failures === 0 ? this.#parts.sweepIntervalMs : retryWaitMs(failures)
    const leftMs = Math.min(waitMs, Math.max(0, triedAt + waitMs - Date.now()))
    user.dueFrom = performance.now() + leftMs + this.#laterMs()
  }
}

function conflictMessage(userCount: number, username: string): string {
  const who = userCount === 1 ? username : `${userCount} users`
  return (
    `The service has another subscription for ${who} with this callback URL, whose id the keeper does not know: ` +
    'a joint subscription, one of another environment, or one that this keeper made and lost. Unsubscribe it by its id, ' +
    'which a STRAY names a minute or two after its next delivery, or use another callback URL.'
  )
}

/** @param error - what the client says of the user who came last */
function invalidMessage(userCount: number, username: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error)
  const who =
    userCount === 1
      ? `${JSON.stringify(username)} cannot be subscribed:`
      : `${userCount} users cannot be subscribed. Of the last one the client says:`
  return `${who} ${reason} Correct the roster or the options: until then nothing is sent for these users.`
}
