/** Counts one sweep: every user is reconciled at least once, if necessary after a wait. */
import type { Obstacle } from './limiter.js'
import type { Ending, Outcome } from './reconcile.js'
import { claimPatienceMs, longAgo, now, sweepPatienceMs } from './timing.js'
import type { SweepProgress, SweepReport } from './types.js'
import type { User } from './users.js'

export class Sweep {
  readonly counts = { wanted: 0, active: 0, created: 0, restored: 0, removed: 0 }
  readonly failed: SweepReport['failed'][number][] = []
  /** Resolves when the sweep waits for no user any more. */
  readonly ended: Promise<void>
  /** The users that the sweep waits for. After a first attempt: its error, and from when on the user counts as failed. */
  readonly #open = new Map<User, { readonly error: unknown; readonly failsFrom: number } | undefined>()
  #total = 0
  /** Since when something prevents every request. */
  #blockedSince = Number.POSITIVE_INFINITY
  #end: () => void = () => {}

  /**
   * @param provenSince - a proof since this time is enough
   * @param wantsNone - whether every user is to be removed
   */
  constructor(
    readonly provenSince: number,
    readonly wantsNone: boolean,
    private readonly onProgress: (progress: SweepProgress) => void,
  ) {
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  begin(users: Iterable<User>): void {
    for (const user of users) this.#open.set(user, undefined)
    this.#total = this.#open.size
    this.#blockedSince = Number.POSITIVE_INFINITY
    if (this.#total === 0) this.#end()
  }

  /** Nothing can be done for these users. */
  failAll(usernames: readonly string[], error: unknown): void {
    if (!this.wantsNone) this.counts.wanted = usernames.length
    for (const username of usernames) this.failed.push({ username, error })
  }

  note(user: User, { ending, gaps, isCreated }: Outcome): void {
    if (!this.#open.has(user)) return
    const isDone = ending.kind === 'done'
    if (isCreated) this.counts.created++
    if (gaps.length > 0) this.counts.restored++
    if (ending.kind === 'forget') this.counts.removed++
    // The proof is older than the sweep: the user is reconciled again.
    if (isDone && user.isWanted && user.proofSince < this.provenSince) return
    if (isDone || ending.kind === 'forget') this.#close(user, isDone && user.isWanted)
    else this.#wait(user, ending)
  }

  /** Waits no longer, if no request could be sent for too long. @param obstacle - what prevents every request now */
  noteObstacle(obstacle: Obstacle | undefined): void {
    this.#blockedSince =
      obstacle === undefined ? Number.POSITIVE_INFINITY : Math.min(this.#blockedSince, now())
    if (!obstacle?.endsSweeps && now() - this.#blockedSince < sweepPatienceMs) return
    for (const [user, known] of this.#open) this.#fail(user, known?.error ?? obstacle?.error)
  }

  #wait(user: User, { error, kind }: Ending): void {
    const known = this.#open.get(user)
    const patienceMs = user.record?.claim === undefined ? sweepPatienceMs : claimPatienceMs
    const failsFrom = known?.failsFrom ?? now() + patienceMs
    // The error of an earlier attempt says more than what prevents the next one.
    const reason = kind === 'prevented' && known ? known.error : error
    this.#open.set(user, { error: reason, failsFrom })
    if (!temporary.includes(kind) || user.dueFrom > failsFrom) this.#fail(user, reason)
  }

  #fail(user: User, error: unknown): void {
    // A user who left the roster may still be subscribed if the record was not read.
    const isNothingLeft = !user.isWanted && user.record === undefined && user.readSince > longAgo
    if (!isNothingLeft) this.failed.push({ username: user.username, error })
    this.#close(user, false)
  }

  #close(user: User, isActive: boolean): void {
    this.#open.delete(user)
    if (user.isWanted) this.counts.wanted++
    if (isActive) this.counts.active++
    const { created, removed, restored } = this.counts
    const done = this.#total - this.#open.size
    this.onProgress({ done, total: this.#total, created, restored, removed, failed: this.failed.length })
    if (this.#open.size === 0) this.#end()
  }
}

/** After another ending, an attempt a moment later would end in the same way. */
const temporary: readonly Ending['kind'][] = ['prevented', 'unavailable', 'credentials']
