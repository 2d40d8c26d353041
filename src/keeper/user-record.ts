/** What the keeper knows of one user. */
import type { Chunk } from './chunk.js'

/**
 * Whether a subscription may exist whose id is not recorded.
 *
 * - `none`: every create was answered.
 * - `loaded`: the record was written by a process that did not end cleanly, so that a probe of it may be unanswered.
 * - `unanswered`: a create was sent, and its answer was not seen.
 */
export type Doubt = 'none' | 'loaded' | 'unanswered'

/** A subscription of one user that exists, may exist, or is about to be created. */
export interface Slot {
  /** Types and callback URL, by their number in the head. */
  readonly target: number
  /** The generation of the configuration whose parameters it has for certain. */
  generation: number
  /** The service's id, once known. */
  id: number | undefined
  /** Whether the service said that there is no subscription with this id. */
  isGone: boolean
  /**
   * Whether somebody else's stood there when it was gone. From then on no create is sent before its intent is stored, so
   * that also the next process knows, after a crash, that what stands there is not its own.
   */
  isTaken: boolean
  /** When the service said so, or when that was read from the store; monotonic. */
  goneSince: number
  /** Whether another one may exist whose id is not known. */
  doubt: Doubt
  /** Whether a create is in flight: nothing can settle what it does. The store is told that it is unanswered. */
  isCreating: boolean
  /** From when on no unanswered create can still take effect; monotonic. */
  settledFrom: number
  /** When the last proof was sent; wall clock. */
  provenAt: number | undefined
  /** An update without an answer: should it take effect late, it undoes what others of later generations brought. */
  lateUpdate: LateUpdate | undefined
  /** Whether this process alone knows the id, or the doubt, because the store failed. */
  isUnwritten: boolean
}

export interface LateUpdate {
  /** The oldest generation whose parameters it may carry. */
  readonly generation: number
  /** From when on it can no longer take effect; monotonic. */
  readonly settledFrom: number
}

/** Everything about one user. */
export interface UserRecord {
  readonly username: string
  /** A tombstone: the subscriptions are to be ended, and then the record is forgotten. */
  isRemoved: boolean
  /** One, as a rule; more while a change of types or callback URL is being carried out. */
  slots: Slot[]
  restoredCount: number
  /** Restores since the last delivery: each makes the next one wait longer. */
  restoresSinceDelivery: number
  /** Wall clock. */
  restoredAt: number | undefined
  /** Before this time nothing is restored for this user; monotonic. */
  restorableFrom: number
  /** Wall clock. */
  deliveryAt: number | undefined
  /**
   * When the user was met as if for the first time, and no gap told; wall clock. None: every gap was told. A process that
   * had met the user in a store that was lost since knows of times before.
   */
  metAt: number | undefined
  /** Added by a roster that was not believed: it does not outweigh those whom that roster lacked. */
  isTentative: boolean
  /** An earlier subscription was ended to make room, or another process's was replaced: the next proof ends a gap. */
  interruption: { readonly lastProvenAt: number | undefined } | undefined

  // What follows is known to this process only.

  /** The id of a delivery of which the conclusions are not drawn yet. */
  deliveredId: number | undefined
  /** When that delivery arrived; monotonic. */
  deliveredSince: number
  /** When that delivery arrived; wall clock, because the monotonic one may stand still until it is looked at. */
  deliveredAt: number
  /** When the user is to be visited next; monotonic. */
  dueFrom: number
  /** The time of the record's entry in the queue; infinite if there is none. */
  queuedFrom: number
  /** When the last proof was sent; monotonic. */
  provenSince: number
  /** When the last create was sent that found something there; monotonic. */
  takenSince: number
  /** Probes of this user, to make every fourth one by id. */
  probes: number
  /** Attempts in a row that failed. */
  failures: number
  /** What the last attempt failed with. */
  error: unknown
  hasConflict: boolean
  /** Whether there is nothing to do but the next probe, which a delivery saves. */
  isQuiet: boolean
  /** The chunk that holds the record; none until it is to be stored for the first time. */
  chunk: Chunk | undefined
}

/** A user whom nobody has met yet. */
export function newUser(username: string): UserRecord {
  return {
    username,
    isRemoved: false,
    slots: [],
    restoredCount: 0,
    restoresSinceDelivery: 0,
    restoredAt: undefined,
    restorableFrom: 0,
    deliveryAt: undefined,
    metAt: undefined,
    isTentative: false,
    interruption: undefined,
    deliveredId: undefined,
    deliveredSince: Number.NEGATIVE_INFINITY,
    deliveredAt: 0,
    dueFrom: 0,
    queuedFrom: Number.POSITIVE_INFINITY,
    provenSince: Number.NEGATIVE_INFINITY,
    takenSince: Number.NEGATIVE_INFINITY,
    probes: 0,
    failures: 0,
    error: undefined,
    hasConflict: false,
    isQuiet: false,
    chunk: undefined,
  }
}

export function newSlot(target: number, generation: number): Slot {
  return {
    target,
    generation,
    id: undefined,
    isGone: false,
    isTaken: false,
    goneSince: Number.NEGATIVE_INFINITY,
    doubt: 'none',
    isCreating: false,
    settledFrom: 0,
    provenAt: undefined,
    lateUpdate: undefined,
    isUnwritten: false,
  }
}

/** Whether an update without an answer may still undo what is brought by one of `generation` that is sent at `since`. */
export function mayBeUndone({ lateUpdate }: Slot, generation: number, since: number): boolean {
  return lateUpdate !== undefined && lateUpdate.generation < generation && since < lateUpdate.settledFrom
}

/** Whether a subscription of this user is known, or was. */
export function isMet({ slots }: UserRecord): boolean {
  return slots.some(({ id }) => id !== undefined)
}

/** The subscription of the present configuration. */
export function slotOf(record: UserRecord, target: number): Slot | undefined {
  return record.slots.find((slot) => slot.target === target)
}
