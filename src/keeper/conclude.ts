/** What follows from how a reconciliation ended: when the user is due next, and what is reported. */
import type { KeeperStore } from './keeper-store.js'
import type { End } from './reconcile.js'
import type { UserRecord } from './record.js'
import type { Records } from './records.js'
import type { Reporter } from './reporter.js'
import { retryWaitMs } from './timing.js'
import type { User, Users } from './users.js'

const minute = 60_000

export interface ConclusionsParts {
  readonly sweepIntervalMs: number
  readonly store: KeeperStore
  readonly users: Users
  readonly records: Records
  readonly reporter: Reporter
}

export class Conclusions {
  readonly #parts: ConclusionsParts

  constructor(parts: ConclusionsParts) {
    this.#parts = parts
  }

  conclude(user: User, end: End): void {
    const { sweepIntervalMs } = this.#parts
    const now = performance.now()
    user.isQuiet = false
    switch (end.kind) {
      case 'settled':
        this.recover(user)
        user.isQuiet = true
        user.hasDeliveryNews = false
        user.dueFrom = this.#nextProofFrom(user)
        break
      case 'removed':
        this.#remove(user)
        break
      case 'conflict':
        user.failures = 0
        user.hasConflict = true
        user.dueFrom = now + sweepIntervalMs
        this.#reportConflict(user)
        break
      case 'waiting':
        user.failures = 0
        user.hasConflict = false
        // A delivery at another process ends the wait.
        user.dueFrom = Math.min(end.dueFrom, now + sweepIntervalMs)
        break
      case 'failed':
        this.#fail(user, end)
        break
      case 'broken':
        user.failures++
        user.error = end.error
        user.dueFrom = now + sweepIntervalMs
        this.#logBug(user)
        break
      case 'claimed':
      case 'tried':
        user.dueFrom = end.dueFrom
        break
      case 'superseded':
        user.dueFrom = now + minute
        break
      default:
        user.dueFrom = now
    }
  }

  /** Nothing is wrong with the user any more. */
  recover(user: User): void {
    user.failures = 0
    user.error = undefined
    user.hasConflict = false
    this.#parts.reporter.problems.removeUser(user.username, ['CONFLICT', 'ROSTER'])
    this.#parts.store.resolve(user.key)
  }

  /** Another process has tried the user, and that ended in a conflict or a failure: it counts for this one, too. */
  adoptTrial(user: User, { failures = 0, triedAt = 0 }: UserRecord): End {
    const { sweepIntervalMs } = this.#parts
    user.failures = failures
    user.hasConflict = failures === 0
    if (user.hasConflict) this.#reportConflict(user)
    const waitMs = user.hasConflict ? sweepIntervalMs : retryWaitMs(failures)
    const leftMs = Math.min(waitMs, Math.max(0, triedAt + waitMs - Date.now()))
    return { kind: 'tried', dueFrom: performance.now() + leftMs + this.#laterMs() }
  }

  /** The process that proved a user last is due first, the others a little later. */
  #nextProofFrom(user: User): number {
    const { records, sweepIntervalMs } = this.#parts
    const now = performance.now()
    const provenBy = user.record?.provenBy
    const laterMs = provenBy === undefined || provenBy === records.by ? 0 : this.#laterMs()
    const proofFrom = Math.max(now + 1_000, user.provenSince + sweepIntervalMs + laterMs)
    return user.restorableFrom > now ? Math.min(proofFrom, user.restorableFrom) : proofFrom
  }

  #laterMs(): number {
    return (Math.random() * this.#parts.sweepIntervalMs) / 15
  }

  #remove(user: User): void {
    const { reporter, store, users } = this.#parts
    users.remove(user)
    reporter.problems.removeUser(user.username)
    store.resolve(user.key)
    const { username } = user
    reporter.log(
      'debug',
      { event: 'user.removed', username },
      'Nothing of a user who left the roster is left',
    )
  }

  #fail(user: User, { failure, notBeforeFrom = 0 }: Extract<End, { kind: 'failed' }>): void {
    const { reporter, sweepIntervalMs } = this.#parts
    const { error, kind, retryAfterMs } = failure
    const { username } = user
    user.failures++
    user.error = error
    const waitMs = kind === 'INVALID' ? sweepIntervalMs : retryWaitMs(user.failures, retryAfterMs)
    user.dueFrom = Math.max(performance.now() + waitMs, notBeforeFrom)
    const fields = { username, failures: user.failures, err: error }
    const message = 'A user could not be kept subscribed, and is tried again'
    reporter.log('warn', { event: 'subscription.failed', ...fields }, message)
    if (kind !== 'INVALID') return
    reporter.problems.addUser('ROSTER', username, (count) => invalidMessage(count, username, error), error)
  }

  #reportConflict({ username }: User): void {
    const message = (userCount: number) => conflictMessage(userCount, username)
    this.#parts.reporter.problems.addUser('CONFLICT', username, message)
  }

  #logBug({ username, failures, error }: User): void {
    const message = 'A bug of the keeper stopped a reconciliation: please report it. The user is tried again'
    this.#parts.reporter.log('error', { event: 'reconcile.broken', username, failures, err: error }, message)
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
