/** The keeper's reports: gaps, problems, sweeps, status. */

/** An interval in which notifications of a user may have been lost. */
export interface KeeperGap {
  readonly username: string
  /** The subscription that exists now. */
  readonly subscriptionId: number
  /** When the last proof of the earlier subscription was sent, in milliseconds since 1970; `undefined` if unknown. */
  readonly lastProvenAt: number | undefined
  /** When the answer with the new id arrived, in milliseconds since 1970. */
  readonly restoredAt: number
  /**
   * `ended`: the service had ended the subscription. `replaced`: an answer or the store was lost, and the subscription
   * was created anew to learn its id. `changed`: the configuration changed in a way that no update can bring about, or the
   * roster lacked the user for a moment.
   */
  readonly cause: 'ended' | 'replaced' | 'changed'
}

/** The kinds of problems, and when each is resolved (docs/keeper.md, Readiness and alerts). */
export type KeeperProblemCode =
  | 'RECEIVER_SUSPECTED'
  | 'CONFLICT'
  | 'CREDENTIALS'
  | 'SERVICE'
  | 'STORE'
  | 'ROSTER'
  | 'REFUSED'
  | 'STRAY'
  | 'ROUTES'
  | 'SUPERSEDED'

/** One problem: reported when it begins, when its users double, and when it is resolved. */
export interface KeeperProblem {
  readonly code: KeeperProblemCode
  /** What happened, and what to do next. */
  readonly message: string
  /** When the problem began, in milliseconds since 1970. */
  readonly sinceAt: number
  /** The users that the problem concerns, unless it concerns all users. */
  readonly usernames?: readonly string[] | undefined
  /** With a `STRAY`: the subscription that the keeper does not know. */
  readonly subscriptionId?: number | undefined
  /** The thrown value, if any. JSON shows nothing of an `Error`, so use its `message`. */
  readonly error?: unknown
  readonly resolved: boolean
}

/** What a sweep found and did: numbers of users. */
export interface SweepReport {
  readonly wanted: number
  /** How many users of the roster are subscribed at the end, `created` and `restored` included. */
  readonly active: number
  /** How many users were subscribed for the first time. */
  readonly created: number
  /** How many users had a subscription that had ended or had to be created again. */
  readonly restored: number
  /** How many users are no longer in the roster, and had their subscription ended. */
  readonly removed: number
  /** Users who are not in the wanted state. They are tried again later. */
  readonly failed: readonly {
    readonly username: string
    /** The error of the last call for this user, or why there was no call. */
    readonly error: unknown
  }[]
  /** The problems at the end. If the roster could not be read (`ROSTER`), the report is about the recorded users. */
  readonly problems: readonly KeeperProblem[]
}

/** How far a sweep is, after each user. */
export interface SweepProgress extends Pick<SweepReport, 'created' | 'restored' | 'removed'> {
  /** How many users the sweep is done with. */
  readonly done: number
  /** How many users the sweep reconciles, users to be removed included. */
  readonly total: number
  /** How many of `done` failed. */
  readonly failed: number
}

/** The subscription of one user, as far as the keeper knows. */
export interface KeptSubscription {
  /** The service's id, if known. */
  readonly subscriptionId: number | undefined
  /**
   * `active`: proven to exist within the last two intervals. `unproven`: not proven, or not yet. `conflict`: another
   * subscription is in the way. `failing`: the last attempt failed.
   */
  readonly state: 'active' | 'unproven' | 'conflict' | 'failing'
  /** When the last proof that the subscription exists was sent, in milliseconds since 1970; `undefined` without one. */
  readonly lastProvenAt: number | undefined
  /** When the last delivery arrived, in milliseconds since 1970; `undefined` without one. */
  readonly lastDeliveryAt: number | undefined
  readonly restoredCount: number
}

/** What the keeper knows, from memory: each user's part is at most an interval and 7 % old. */
export interface KeeperStatus {
  /**
   * Always `true`: a process is ready when its server listens and its spool is open (docs/keeper.md, Readiness and alerts).
   *
   * @deprecated Answer a readiness probe without the keeper. Removed in 0.7.
   */
  readonly isReady: true
  /** Users by state, see {@link KeptSubscription.state}. */
  readonly counts: Readonly<Record<KeptSubscription['state'], number>>
  /** The oldest of all users' last proofs, in milliseconds since 1970; `undefined` if a user has none, or without users. */
  readonly oldestProofAt: number | undefined
  /** The open problems that this process sees: for alerts, and never for a readiness probe. */
  readonly problems: readonly KeeperProblem[]
}
