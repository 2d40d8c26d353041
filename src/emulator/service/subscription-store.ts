/** The state machine of subscriptions (docs/service.md, States): synchronous, in memory, without I/O. */
import type { NotificationType } from '../../notification-types.js'

/** A subscription as it was at one moment. */
export interface SubscriptionRecord {
  /** The identifier that creating returned. */
  readonly subscriptionId: number
  readonly notificationTypes: readonly NotificationType[]
  /** The users (agents) that notifications are about. */
  readonly usernames: readonly string[]
  readonly callbackUrl: string
  /** The associated parameters, sent as headers on every callback (docs/service.md, Resources). */
  readonly parameters: Readonly<Record<string, string>>
  /** Callbacks that failed since the last one that succeeded. */
  readonly consecutiveFailures: number
}

/** What a create asks for: no type and no user twice. */
export type Wanted = Omit<SubscriptionRecord, 'subscriptionId' | 'consecutiveFailures'>

/** Why a subscription ended: unsubscribe, a create that replaced it, three failed callbacks, or `endSubscription`. */
export type EndReason = 'unsubscribed' | 'replaced' | 'three-failures' | 'by-request'

export type SubscriptionChange =
  | { readonly kind: 'created'; readonly subscription: SubscriptionRecord }
  | { readonly kind: 'ended'; readonly subscription: SubscriptionRecord; readonly reason: EndReason }

/** Failures in a row after which the service ends a subscription (docs/service.md, Delivery). */
const failuresThatEndASubscription = 3

export class SubscriptionStore {
  /** No record is changed in place. */
  readonly #active = new Map<number, SubscriptionRecord>()
  /** Rule 1 as a data structure: the id of the only subscription for a type with a user, and a callback URL. */
  readonly #index = new Map<string, Map<string, number>>()
  #lastId = 0

  constructor(private readonly onChange: (change: SubscriptionChange) => void) {}

  /** docs/service.md, States: the first four rows. The id is that of the new subscription, or of the one in the way. */
  create(
    wanted: Wanted,
    recreateIfExists: boolean,
  ): { outcome: 'created' | 'duplicate' | 'partial-overlap'; subscriptionId: number } {
    const existing = this.#firstOverlap(wanted)
    if (existing !== undefined) {
      const { subscriptionId } = existing
      const isDuplicate =
        areEqual(existing.notificationTypes, wanted.notificationTypes) &&
        areEqual(existing.usernames, wanted.usernames)
      if (!isDuplicate) return { outcome: 'partial-overlap', subscriptionId }
      if (!recreateIfExists) return { outcome: 'duplicate', subscriptionId }
      this.end(subscriptionId, 'replaced')
    }
    return { outcome: 'created', subscriptionId: this.#add(wanted) }
  }

  /** Ends a subscription; false if no active one has this id. */
  end(subscriptionId: number, reason: EndReason): boolean {
    const subscription = this.#active.get(subscriptionId)
    if (subscription === undefined) return false
    this.#active.delete(subscriptionId)
    for (const pair of pairsOf(subscription)) this.#index.get(pair)?.delete(subscription.callbackUrl)
    this.onChange({ kind: 'ended', subscription, reason })
    return true
  }

  /** Sets the given parameters, and keeps the others, while the subscription is active (docs/service.md, Rules). */
  updateParameters(subscriptionId: number, changes: Readonly<Record<string, string>>): void {
    const { parameters = {} } = this.#active.get(subscriptionId) ?? {}
    this.#change(subscriptionId, { parameters: merged(parameters, changes) })
  }

  /** The third failure in a row ends an active subscription; a success counts from 0 again. */
  callbackDone(subscriptionId: number, hasSucceeded: boolean): void {
    const { consecutiveFailures: before = 0 } = this.#active.get(subscriptionId) ?? {}
    const consecutiveFailures = hasSucceeded ? 0 : before + 1
    this.#change(subscriptionId, { consecutiveFailures })
    if (consecutiveFailures === failuresThatEndASubscription) this.end(subscriptionId, 'three-failures')
  }

  get(subscriptionId: number): SubscriptionRecord | undefined {
    return this.#active.get(subscriptionId)
  }

  /** The subscriptions that want notifications of this type for this user (docs/service.md, Delivery). */
  matching(
    type: NotificationType,
    username: string,
  ): Pick<SubscriptionRecord, 'subscriptionId' | 'callbackUrl'>[] {
    const byCallbackUrl = this.#index.get(pairOf(type, username)) ?? []
    return Array.from(byCallbackUrl, ([callbackUrl, subscriptionId]) => ({ subscriptionId, callbackUrl }))
  }

  list(): SubscriptionRecord[] {
    return [...this.#active.values()]
  }

  /**
   * A subscription that covers a user and a type of a request at its callback URL. The first that is found is enough:
   * if it is identical to what is wanted, rule 1 allows no other, and if not, the request is refused anyway.
   */
  #firstOverlap(wanted: Wanted): SubscriptionRecord | undefined {
    for (const pair of pairsOf(wanted)) {
      const overlapping = this.#index.get(pair)?.get(wanted.callbackUrl)
      if (overlapping !== undefined) return this.#active.get(overlapping)
    }
    return undefined
  }

  #add(wanted: Wanted): number {
    const subscriptionId = ++this.#lastId
    const subscription = { subscriptionId, ...wanted, consecutiveFailures: 0 }
    this.#active.set(subscriptionId, subscription)
    for (const pair of pairsOf(subscription)) {
      const byCallbackUrl = this.#index.get(pair) ?? new Map()
      this.#index.set(pair, byCallbackUrl.set(wanted.callbackUrl, subscriptionId))
    }
    this.onChange({ kind: 'created', subscription })
    return subscriptionId
  }

  #change(subscriptionId: number, change: Partial<SubscriptionRecord>): void {
    const before = this.#active.get(subscriptionId)
    if (before !== undefined) this.#active.set(subscriptionId, { ...before, ...change })
  }
}

/** Whether two lists, each without duplicates, have the same items. */
function areEqual(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && new Set([...some, ...others]).size === some.length
}

/** A type with a user, as a key: no type has a space. */
function pairOf(type: NotificationType, username: string): string {
  return `${type} ${username}`
}

function* pairsOf(covers: Wanted): Generator<string> {
  for (const type of covers.notificationTypes) {
    for (const username of covers.usernames) yield pairOf(type, username)
  }
}

/** Names of headers that differ in case only are the same name. */
function merged(
  parameters: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const all = [...Object.entries(parameters), ...Object.entries(changes)]
  const byName = new Map(all.map((pair) => [pair[0].toLowerCase(), pair]))
  return Object.fromEntries(byName.values())
}
