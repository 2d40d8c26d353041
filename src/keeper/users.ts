/** The users of this process: for each the record as the store holds it, and what only this process knows. */
import { createHash } from 'node:crypto'
import {
  isSettled,
  isThere,
  laterStamp,
  type SubscriptionState,
  stateOf,
  type UserRecord,
  withLost,
} from './record.js'
import { deliveryLagMs, type Instant } from './timing.js'
import type { KeptSubscription } from './types.js'

/** Callbacks of a subscription that has ended may arrive so much later. */
const lateCallbacksMs = 300_000
/** A proof older than so many intervals is none any more. */
const intervalsOfAProof = 2

const never = Number.NEGATIVE_INFINITY

/** A delivery of the subscription `id`. */
export interface Delivery extends Instant {
  readonly id: number
}

/** What a reconciliation has brought about. */
export interface Achieved {
  isCreated: boolean
  isRestored: boolean
}

export class User {
  readonly username: string
  /** Where the record stands in the store; a hash, because keys must not show usernames. */
  readonly key: string
  isWanted: boolean
  /** Whether the name is among the members; `undefined` while its shard cannot be read. */
  isMember: boolean | undefined = false

  /** The record as this process has read or written it last; none: not read, or not there. */
  record: UserRecord | undefined
  /** The record as text. */
  text: string | undefined
  /** What the record says of the wanted subscription. */
  present: SubscriptionState | undefined
  /** The record in a store that was lost: of what the new one may not know. */
  beforeLoss: UserRecord | undefined
  /** When the record was first seen as it is: a claim in it is at least as old. Monotonic. */
  textSince = never
  /** When the record was read or written last; monotonic. */
  seenSince = never
  /** Claims of this process under which nothing was sent. */
  unsentClaims: Set<string> | undefined

  /** When the last proof was sent; monotonic. */
  provenSince = never
  /** The id that this process itself has seen proven. */
  provenId: number | undefined
  /** When the service said that no subscription has the recorded id; monotonic. */
  goneSince = never
  /** Before this time an ended subscription is not restored; monotonic. */
  restorableFrom = 0
  lastDelivery: Delivery | undefined

  /** When the user is to be reconciled next; monotonic. */
  dueFrom = performance.now()
  /** Whether something to do has come up since the reconciliation in progress began. */
  isDueAgain = false
  /** Whether nothing is to be done but the next proof, which a delivery saves. */
  isQuiet = false
  /** Attempts in a row that failed. */
  failures = 0
  hasConflict = false
  /** The reconciliation in progress. */
  reconciling: Promise<Achieved> | undefined

  constructor(username: string, isWanted: boolean) {
    this.username = username
    this.key = `user:${createHash('sha256').update(username, 'utf16le').digest('base64url').slice(0, 24)}`
    this.isWanted = isWanted
  }

  /** @param key - of the wanted subscription's spec */
  setRecord(record: UserRecord | undefined, text: string | undefined, key: string): void {
    this.record = record
    this.text = text
    this.present = stateOf(record, key)
    this.textSince = performance.now()
    this.seenSince = this.textSince
  }

  /** The last delivery, if it proves the wanted subscription: one received before a 404 proves nothing. */
  get proofByDelivery(): Delivery | undefined {
    const { lastDelivery, present } = this
    if (lastDelivery === undefined || present?.id !== lastDelivery.id) return undefined
    return present.isGone && lastDelivery.since - deliveryLagMs <= this.goneSince ? undefined : lastDelivery
  }

  /** Whether the last delivery proves what other processes should know. */
  hasDeliveryNews(sweepIntervalMs: number): boolean {
    const { present, proofByDelivery, record } = this
    if (proofByDelivery === undefined || record === undefined) return false
    const newsMs = proofByDelivery.at - deliveryLagMs - (present?.provenAt ?? never)
    return record.restoresSinceDelivery > 0 || newsMs >= sweepIntervalMs / 2
  }

  /** The store has lost this record, or another process has written over it and does not know it. */
  remember(record: UserRecord): void {
    this.beforeLoss = withLost(record, this.beforeLoss ?? record)
  }

  /** What users of the keeper see. */
  shown(sweepIntervalMs: number): KeptSubscription {
    const { failures, hasConflict, lastDelivery, present, proofByDelivery, provenSince, record } = this
    const isRecent = performance.now() - provenSince <= intervalsOfAProof * sweepIntervalMs
    let state: KeptSubscription['state'] = isSettled(present) && isRecent ? 'active' : 'unproven'
    if (hasConflict) state = 'conflict'
    if (failures > 0) state = 'failing'
    return {
      subscriptionId: isThere(present) ? present.id : undefined,
      state,
      lastProvenAt: laterStamp(present?.provenAt, proofByDelivery && proofByDelivery.at - deliveryLagMs),
      lastDeliveryAt: laterStamp(lastDelivery?.at, record?.deliveryAt),
      restoredCount: record?.restoredCount ?? 0,
    }
  }

  /** There is something to do besides the next proof. */
  makeDue(): void {
    this.isQuiet = false
    this.isDueAgain = true
    this.dueFrom = Math.min(this.dueFrom, performance.now())
  }
}

export class Users {
  readonly #byName = new Map<string, User>()
  readonly #byId = new Map<number, User>()
  /** Ids of ended subscriptions, oldest first, and until when their late callbacks are not reported; monotonic. */
  readonly #endedIds = new Map<number, number>()
  #unknownEndedSince = never

  /** When a subscription of unknown id may have been replaced; monotonic. */
  get unknownEndedSince(): number {
    return this.#unknownEndedSince
  }

  get size(): number {
    return this.#byName.size
  }

  [Symbol.iterator](): IterableIterator<User> {
    return this.#byName.values()
  }

  get(username: string): User | undefined {
    return this.#byName.get(username)
  }

  withId(id: number): User | undefined {
    return this.#byId.get(id)
  }

  /** Whether a subscription of this id has ended a moment ago. */
  hasEnded(id: number): boolean {
    return performance.now() < (this.#endedIds.get(id) ?? never)
  }

  add(username: string, isWanted: boolean): User {
    const user = new User(username, isWanted)
    this.#byName.set(username, user)
    return user
  }

  remove(user: User): void {
    this.trackIds(user, user.record, undefined)
    if (this.#byName.get(user.username) === user) this.#byName.delete(user.username)
  }

  /** The ids of a user have changed. */
  trackIds(user: User, before: UserRecord | undefined, after: UserRecord | undefined): void {
    const present = new Set(after?.subscriptions.map(({ id }) => id))
    for (const { id } of before?.subscriptions ?? []) {
      if (id !== undefined && !present.has(id)) this.#end(id)
    }
    const news = [...present].filter((id) => id !== undefined && this.#byId.get(id) !== user)
    for (const id of news) if (id !== undefined) this.#byId.set(id, user)
    if (news.length > 0 && mayHideAnother(before)) this.#unknownEndedSince = performance.now()
  }

  #end(id: number): void {
    const now = performance.now()
    this.#byId.delete(id)
    this.#endedIds.delete(id)
    this.#endedIds.set(id, now + lateCallbacksMs)
    for (const [each, until] of this.#endedIds) {
      if (until > now) break
      this.#endedIds.delete(each)
    }
  }
}

/** Whether a subscription may have existed whose id the record does not have. */
function mayHideAnother(record: UserRecord | undefined): boolean {
  const isCreating = record?.claim?.call === 'create' || record?.claim?.call === 'recreate'
  return isCreating || record?.subscriptions.some(({ isOutcomeUnknown }) => isOutcomeUnknown) === true
}
