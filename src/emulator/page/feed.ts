/** What the page server tells the page: types only, shared by both sides. Every secret in them is masked. */
import type { NotificationType } from '../../notification-types.js'
import type { RecordedRequest } from '../service/request-log.js'
import type { EndReason } from '../service/subscription-store.js'

/** Stands where a secret was: the server never sends one unasked. */
export type MaskedText = string

export interface MaskedHeader {
  readonly name: string
  readonly value: MaskedText
}

/** A subscription, active or (with `ended`) not any more. */
export interface SubscriptionView {
  readonly subscriptionId: number
  readonly notificationTypes: readonly NotificationType[]
  readonly usernames: readonly string[]
  readonly callbackUrl: MaskedText
  readonly parameters: readonly MaskedHeader[]
  readonly consecutiveFailures: number
  readonly ended?: { readonly reason: EndReason; readonly at: number }
}

interface EntryBase {
  /** Unique among all entries; grows by one with each, so that it also counts them. */
  readonly id: number
  /** When it began or happened, in milliseconds since 1970. */
  readonly at: number
}

interface MessageBase extends EntryBase {
  readonly headers: readonly MaskedHeader[]
  readonly body: MaskedText
  /** Characters of the whole body: more than `body` has if that was cut. */
  readonly bodyLength: number
  readonly status?: number
  readonly error?: string
  /** The injected fault that was met, in words. */
  readonly fault?: string
  /** Missing while the answer is outstanding. */
  readonly durationMs?: number
  /** Whether something in it is masked and can be revealed. */
  readonly hasSecrets: boolean
}

/** A request that reached the emulator. */
export interface RequestView extends MessageBase {
  readonly kind: 'request'
  readonly operation: string
  readonly method: string
  readonly path: MaskedText
  /** Why the emulator refused it. */
  readonly refusal?: RecordedRequest['refusal']
}

/** A callback that the emulator sent. */
export interface CallbackView extends MessageBase {
  readonly kind: 'callback'
  readonly subscriptionId: number
  readonly callbackUrl: MaskedText
  /** `notification.type` of the body. */
  readonly type: string
  /** Whom it is about, where that is known: the payload's `username`, or the subscription's only user. */
  readonly username?: string
}

/** Something that is neither: the end of a subscription, tokens that were revoked. */
export type NoteView = EntryBase & { readonly kind: 'note' } & (
    | { readonly note: 'ended'; readonly subscriptionId: number; readonly reason: EndReason }
    | { readonly note: 'tokens-revoked' }
  )

export type EntryView = RequestView | CallbackView | NoteView

export interface PlannedFaultView {
  readonly operation: string
  /** What happens, in words. */
  readonly fault: string
  readonly remaining: number
  readonly subscriptionId?: number
}

/** A type of notification that can be picked in the form, with its sample. */
export interface SampleView {
  readonly type: string
  readonly category: NotificationType
  readonly payload: object
}

/** How a client finds this emulator, without its secrets. */
export interface ServiceView {
  readonly baseUrl: string
  readonly authUrl: string
  readonly domain: string
  readonly clientId: string
}

/** The answer to a POST that reveals an entry: what was sent, as it was sent. */
export interface RevealedEntry {
  readonly path?: string
  readonly callbackUrl?: string
  readonly headers: readonly MaskedHeader[]
  readonly body: string
}

/** The answer to a POST that reveals a subscription. */
export interface RevealedSubscription {
  readonly callbackUrl: string
  readonly parameters: readonly MaskedHeader[]
}

/** The answer to a POST that reveals the credentials. */
export interface RevealedCredentials {
  readonly clientSecret: string
}

/** The answer to a POST that sent a notification: one result for each subscription that wanted it. */
export interface NotifyAnswer {
  readonly results: readonly {
    readonly subscriptionId: number
    readonly callbackUrl: MaskedText
    readonly status?: number
    readonly error?: string
    readonly subscriptionEnded: boolean
  }[]
}

/** Everything as it is now: the first thing a page gets. */
export interface Snapshot {
  readonly service: ServiceView
  readonly samples: readonly SampleView[]
  readonly subscriptions: readonly SubscriptionView[]
  readonly ended: readonly SubscriptionView[]
  readonly entries: readonly EntryView[]
  readonly faults: readonly PlannedFaultView[]
  /** Since the start; the newest 1,000 are in `ended`. */
  readonly endedCount: number
}

/** What has changed since the last message. Objects replace those of the same id. */
export interface Batch {
  readonly subscriptions?: readonly SubscriptionView[]
  readonly entries?: readonly EntryView[]
  readonly faults?: readonly PlannedFaultView[]
}
