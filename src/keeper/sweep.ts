/** Counts one sweep: every user is reconciled at least once, if necessary after a wait. */
import type { Ending, Outcome } from './reconcile.js'
import { claimPatienceMs, longAgo, now, sweepPatienceMs } from './timing.js'
import type { SweepProgress, SweepReport } from './types.js'
import type { User } from './users.js'

export type OnProgress = (progress: SweepProgress) => void
export type Counted = Omit<SweepReport, 'problems'>

export class Sweep {
  /** When it began to wait for users. */
  startedSince = longAgo
  /** Resolves when the sweep waits for no user. */
  readonly ended: Promise<void>
  /** The users that the sweep waits for. After a first attempt: its error, and how long the sweep still waits. */
  readonly #open = new Map<User, { readonly error: unknown; readonly patientUntil: number } | undefined>()
  #total = 0
  readonly #counts = { created: 0, restored: 0, removed: 0 }
  readonly #failed: { username: string; error: unknown }[] = []
  #wanted = 0
  #active = 0
  #end: () => void = () => {}

  /** @param provenSince - proofs since then are enough */
  constructor(
    private readonly provenSince: number,
    private readonly onProgress: OnProgress,
  ) {
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  /** Waits for each of these users. */
  begin(users: Iterable<User>): void {
    this.startedSince = now()
    for (const user of users) this.#open.set(user, undefined)
    this.#total = this.#open.size
    if (this.#total === 0) this.#end()
  }

  /** A user was reconciled. @param againMs - when the user is due again */
  note(user: User, { ending, gaps, isCreated }: Outcome, againMs: number): void {
    if (!this.#open.has(user)) return
    if (isCreated) this.#counts.created++
    if (gaps.length > 0) this.#counts.restored++
    // The reconciliation had begun before the sweep.
    if (ending.kind === 'done' && user.isWanted && user.proofSince < this.provenSince) return
    if (ending.kind === 'removed') {
      this.#counts.removed++
      this.#close(user, false)
    } else if (ending.kind === 'done') this.#close(user, user.isWanted)
    else this.#wait(user, ending, againMs)
  }

  /** Stops waiting. @param reason - why no user can be reconciled */
  end(reason: unknown): void {
    for (const [user, known] of this.#open) this.#fail(user, known?.error ?? reason)
  }

  report(): Counted {
    return { wanted: this.#wanted, active: this.#active, ...this.#counts, failed: this.#failed }
  }

  #wait(user: User, { error, kind }: Ending, againMs: number): void {
    const known = this.#open.get(user)
    const patienceMs = user.record?.claim === undefined ? sweepPatienceMs : claimPatienceMs
    const patientUntil = known?.patientUntil ?? now() + patienceMs
    // The request behind a claim has already reported the reason.
    const reason = kind === 'claimed' && known ? known.error : error
    this.#open.set(user, { error: reason, patientUntil })
    if (final.includes(kind) || now() + againMs > patientUntil) this.#fail(user, reason)
  }

  #fail(user: User, error: unknown): void {
    if (user.isWanted || user.record !== undefined) this.#failed.push({ username: user.username, error })
    this.#close(user, false)
  }

  #close(user: User, isActive: boolean): void {
    this.#open.delete(user)
    if (user.isWanted) this.#wanted++
    if (isActive) this.#active++
    const done = this.#total - this.#open.size
    this.onProgress({ done, total: this.#total, ...this.#counts, failed: this.#failed.length })
    if (this.#open.size === 0) this.#end()
  }
}

/** An attempt a moment later would end in the same way. */
const final: readonly Ending['kind'][] = ['invalid', 'refused', 'blocked', 'bug', 'conflict', 'waiting']
