/** What the page's server sends to the page: types only, used by both sides. Every secret in them is masked. */
import type { NotificationType } from '../../notification-types.js'
import type { RecordedRequest } from '../activity.js'
import type { EndReason } from '../service/subscription-store.js'

/** Text in which secrets are masked: the server sends a secret only when the page asks for it. */
export type MaskedText = string

export interface MaskedHeader {
  readonly name: string
  readonly value: MaskedText
}

/** A subscription: active, or with `ended` no longer. */
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
  /** Grows by one with each entry, so that it also counts them. */
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
  /** Missing while the request or callback is in flight. */
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
  /** The delivered `notification.type`. */
  readonly type: string
  /** The user that the notification is about. */
  readonly username: string
}

/** Another event: the end of a subscription, or the revocation of all tokens. */
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
  /** The environment variables of a client of this emulator, in the order of `.env`. */
  readonly variables: readonly Variable[]
  /** Whether callback URLs may begin with `http:` on loopback. */
  readonly allowInsecureLoopback: boolean
}

/** An environment variable. */
export interface Variable {
  readonly name: string
  readonly value: MaskedText
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
  readonly variables: readonly Variable[]
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
  /** If no subscription wanted it: the newest 20 active subscriptions. */
  readonly subscribed?: readonly {
    readonly subscriptionId: number
    readonly notificationTypes: readonly NotificationType[]
    readonly usernames: readonly string[]
  }[]
  /** How many subscriptions are active, where `subscribed` is given. */
  readonly subscribedCount?: number
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
