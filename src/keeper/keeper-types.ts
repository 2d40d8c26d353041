/** What a user of the keeper sees: its options, its reports and what it tells of. */
import type { NotificationClient } from '../client/notification-client.js'
import type { Logger } from '../logger.js'
import type { NotificationType } from '../notification-types.js'
import type { KeyValueStore } from '../stores/key-value-store.js'
import type { AssociatedValues } from '../subscriptions/associated-values.js'

/** The calls that the keeper makes: a `NotificationClient`, or anything that has these three methods of it. */
export type KeeperClient = Pick<
  NotificationClient,
  'tryCreateSubscription' | 'unsubscribe' | 'updateSubscriptionParameters'
>

/** Who is to be subscribed: a list, or a function that is asked before every pass. */
export type Roster = readonly string[] | (() => readonly string[] | Promise<readonly string[]>)

/** What a `SubscriptionKeeper` needs: everything down to `callbackUrl`; the rest has defaults. */
export interface SubscriptionKeeperOptions {
  /** Makes the calls. The keeper repeats failed calls itself and asks for each with `retry: false`. */
  readonly client: KeeperClient
  /** Prefix of the keeper's keys in the store: one name for each roster, the same in all its processes. */
  readonly name: string
  /**
   * Where the keeper remembers subscription ids. `redisStore` of `notification-subscriber/redis` lets several
   * processes take turns; a store without `compareAndSet` is for one process; `new Map()` forgets at a restart.
   */
  readonly store: KeyValueStore
  /** Who is to be subscribed. A function is given 30 s. */
  readonly usernames: Roster
  /** What they are subscribed to. */
  readonly notificationTypes: readonly NotificationType[]
  /** Where the notifications go. */
  readonly callbackUrl: string | URL
  /** Sent as fields of the form, and back as headers of every callback. */
  readonly parameters?: AssociatedValues | undefined
  /** Sent as request headers, and back as headers of every callback. */
  readonly headers?: AssociatedValues | undefined
  /** A subscription was restored: notifications of this user may be missing. Default: a line in the log. */
  readonly onGap?: ((gap: KeeperGap) => unknown) | undefined
  /** A trouble began, doubled its users, or is over. Default: a line in the log. */
  readonly onProblem?: ((problem: KeeperProblem) => unknown) | undefined
  /** In what time each user is looked at once, in milliseconds. Default: 900,000. */
  readonly sweepIntervalMs?: number | undefined
  /** Requests that this process sends in any second at most; `Infinity` for no limit. Default: 50. */
  readonly maxRequestsPerSecond?: number | undefined
  /** Requests in flight at most. Default: 8. */
  readonly concurrency?: number | undefined
  /**
   * What to do at the first meeting with a user who has such a subscription already: replace it, because its id is
   * not known, or leave it and report a `CONFLICT`. Default: `'replace'`.
   */
  readonly existing?: 'replace' | 'report' | undefined
  /** A roster that lacks a larger share of more than ten recorded users removes nobody. Default: 0.5. */
  readonly maxRemovedShare?: number | undefined
  /** Whether deliveries of unknown subscriptions are reported. Default: `true`; `false` if keepers share a receiver. */
  readonly reportStrays?: boolean | undefined
  /** Gets what the keeper does. Default: losses on `console.error`, else silent; `false`: silent. */
  readonly logger?: Logger | false | undefined
}

/** An interval in which notifications of a user may have been lost. */
export interface KeeperGap {
  /** The user. */
  readonly username: string
  /** The subscription that exists now. */
  readonly subscriptionId: number
  /** When the last proof that the earlier one existed was sent, in milliseconds since 1970; unknown: `undefined`. */
  readonly lastProvenAt: number | undefined
  /** When the answer arrived that says that one exists again, in milliseconds since 1970. */
  readonly restoredAt: number
  /**
   * `ended`: it had ended. `replaced`: the answer to an earlier create was lost, and it was created anew to learn its
   * id. `changed`: the configuration changed in a way that no update can bring about, or the roster lost the user for
   * a moment.
   */
  readonly cause: 'ended' | 'replaced' | 'changed'
}

/** What kind of trouble it is. */
export type KeeperProblemCode =
  /** Subscriptions end: the receiver probably fails its callbacks. */
  | 'RECEIVER_SUSPECTED'
  /** Somebody else's subscription, or a forgotten one, stands in the way. */
  | 'CONFLICT'
  /** The service or the authorization server refuses the credentials. */
  | 'CREDENTIALS'
  /** The service fails or cannot be reached. */
  | 'SERVICE'
  /** The store fails, hangs, or lost what was in it. */
  | 'STORE'
  /** The roster is empty, failed, or lacks too many users: nobody is removed. */
  | 'ROSTER'
  /** Deliveries arrive of a subscription that the keeper does not know. */
  | 'STRAY'
  /** Another process runs a newer configuration: this one stands aside for good. */
  | 'SUPERSEDED'

/** One trouble: told when it begins, when its users double, and when it is over. */
export interface KeeperProblem {
  /** What kind of trouble it is. */
  readonly code: KeeperProblemCode
  /** What happened, and what to do next. */
  readonly message: string
  /** When it began, in milliseconds since 1970. */
  readonly sinceAt: number
  /** The users concerned, where it is not everybody. */
  readonly usernames?: readonly string[] | undefined
  /** The subscription, of a `STRAY`. */
  readonly subscriptionId?: number | undefined
  /** What was thrown, if something was. */
  readonly error?: unknown
  /** Whether it is over. */
  readonly resolved: boolean
}

/** What a pass did. */
export interface SweepReport {
  /** Users of the roster. */
  readonly wanted: number
  /** Users of the roster who are subscribed at the end, `created` and `restored` included. */
  readonly active: number
  /** Users subscribed for the first time. */
  readonly created: number
  /** Users whose subscription had ended, or had to be made anew. */
  readonly restored: number
  /** Users who are no longer in the roster and whose subscription was ended. */
  readonly removed: number
  /** Users with whom the pass did not come to an end. Later passes try again. */
  readonly failed: readonly {
    /** The user. */
    readonly username: string
    /** What the last call for this user failed with, or why there was none. */
    readonly error: unknown
  }[]
  /** The troubles that were there at the end. */
  readonly problems: readonly KeeperProblem[]
}

/** How far a pass is. */
export interface SweepProgress {
  /** Users who are done. */
  readonly done: number
  /** Users there are to do, those to be removed included. */
  readonly total: number
  /** Of those done: subscribed for the first time. */
  readonly created: number
  /** Of those done: restored. */
  readonly restored: number
  /** Of those done: removed. */
  readonly removed: number
  /** Of those done: failed. */
  readonly failed: number
}

/** What a caller sets on a pass. */
export interface SweepOptions {
  /** Ends the caller's wait; the pass goes on. */
  readonly signal?: AbortSignal | undefined
  /** Called after every user. */
  readonly onProgress?: ((progress: SweepProgress) => unknown) | undefined
  /** Removes users even if more than `maxRemovedShare` are missing from the roster. Default: `false`. */
  readonly allowRemovals?: boolean | undefined
}

/** What a rotation of parameters came to. */
export interface RotationReport {
  /** Users whose callbacks carry the new values. */
  readonly confirmed: readonly string[]
  /** Users of whom that is not certain yet; later passes finish them. */
  readonly pending: readonly string[]
}

/** How it stands with one user. */
export interface KeptSubscription {
  /** The service's id, if known. */
  readonly subscriptionId: number | undefined
  /**
   * `active`: proven within the last two intervals. `unproven`: not, or not yet. `conflict`: another subscription is
   * in the way. `failing`: the last attempt failed.
   */
  readonly state: 'active' | 'unproven' | 'conflict' | 'failing'
  /** When the last proof that it exists was sent, in milliseconds since 1970. */
  readonly lastProvenAt: number | undefined
  /** When the last delivery arrived, in milliseconds since 1970. */
  readonly lastDeliveryAt: number | undefined
  /** How often it was restored. */
  readonly restoredCount: number
}

/** What a health check shows. */
export interface KeeperStatus {
  /** Users by state, see {@link KeptSubscription.state}. */
  readonly counts: Readonly<Record<KeptSubscription['state'], number>>
  /** The oldest of the users' last proofs, in milliseconds since 1970; `undefined` if one has none, or nobody is kept. */
  readonly oldestProofAt: number | undefined
  /** The troubles there are now. */
  readonly problems: readonly KeeperProblem[]
}
