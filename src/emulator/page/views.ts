/** The page's views of the emulator's records. The page imports these types. */
import { documentedNotificationTypes, notificationTypes } from '../../notification-types.js'
import { samplePayload } from '../../webhooks/sample.js'
import type {
  Activity,
  HistoryEntry,
  RecordedCallback,
  RecordedMessage,
  RecordedRequest,
} from '../activity.js'
import type { CallbackResult, Callbacks } from '../callbacks.js'
import { type FaultPlan, faultInWords, type PlannedFault, plannedInWords } from '../faults.js'
import type { EmulatedNotification } from '../notification.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import { clientVariables } from '../words.js'
import type { Mask } from './mask.js'

/** What the page's server uses of an emulator. */
export interface PageHost {
  readonly emulator: Readonly<
    Record<'baseUrl' | 'authUrl' | 'domain' | 'clientId' | 'clientSecret' | 'ca', string>
  > & {
    readonly clientOptions: { readonly allowInsecureLoopback: boolean }
    readonly subscriptions: readonly SubscriptionRecord[]
    notify(notification: EmulatedNotification): Promise<readonly CallbackResult[]>
    endSubscription(subscriptionId: number): boolean
    revokeTokens(): void
  }
  readonly activity: Activity
  readonly callbacks: Callbacks
  readonly faults: FaultPlan
  /** Environment variables that the page shows in addition to the emulator's, or instead of them. */
  readonly environment: Readonly<Record<string, string>>
}

export type ServiceView = ReturnType<typeof serviceView>
export type SubscriptionView = ReturnType<typeof subscriptionView>
export type PlannedFaultView = ReturnType<typeof faultView>
export type EntryView = ReturnType<typeof entryView>
export type RequestView = Extract<EntryView, { kind: 'request' }>
export type CallbackView = Extract<EntryView, { kind: 'callback' }>
export type EndView = Extract<EntryView, { kind: 'ended' }>
export type AnswerView = ReturnType<typeof messageView>
export type Snapshot = ReturnType<typeof snapshotOf>
export type SampleView = (typeof samples)[number]

/** The changes, each of which replaces the item with its id, and all faults. */
export interface Batch {
  readonly entries: readonly EntryView[]
  readonly subscriptions: readonly SubscriptionView[]
  readonly faults: readonly PlannedFaultView[]
}

export type Pair = readonly [name: string, value: string]

/** Each documented type with its sample, for the form. */
const samples = notificationTypes.flatMap((category) =>
  documentedNotificationTypes[category].map((type) => ({ type, category, payload: samplePayload(type) })),
)

/** What a page gets first. */
export function snapshotOf(host: PageHost, mask: Mask) {
  return {
    service: serviceView(host, mask),
    samples,
    subscriptions: host.emulator.subscriptions.map((subscription) => subscriptionView(subscription, mask)),
    entries: host.activity.history.map((entry) => entryView(entry, mask)),
    faults: host.faults.list().map(faultView),
  }
}

/** The addresses and credentials of this emulator, with the variables for `.env`. */
export function serviceView({ emulator, environment }: PageHost, mask: Mask) {
  // The name under which a browser saves the certificate that the page offers.
  const variables = { ...clientVariables(emulator, 'emulator-ca.pem'), ...environment }
  return {
    baseUrl: emulator.baseUrl,
    allowInsecureLoopback: emulator.clientOptions.allowInsecureLoopback,
    variables: pairs(variables, mask.variable),
  }
}

export function entryView(entry: HistoryEntry, mask: Mask) {
  const { number: id, kind } = entry
  switch (kind) {
    case 'request': {
      const { path, body, ...record } = entry.record
      const shown = { target: mask.url(path), body: mask.form(record.headers['content-type'], body) }
      return { ...record, ...exchangeView(entry.record, mask), id, kind, ...shown }
    }
    case 'callback': {
      const { callbackUrl, ...record } = entry.record
      const target = mask.url(callbackUrl)
      return { ...record, ...exchangeView(entry.record, mask), id, kind, method: 'POST', target }
    }
    case 'ended': {
      const { at, reason } = entry
      return { id, kind, at, reason, subscription: subscriptionView(entry.subscription, mask) }
    }
    case 'tokens-revoked':
      return { id, kind, at: entry.at }
  }
}

function exchangeView(record: RecordedRequest | RecordedCallback, mask: Mask) {
  const { startedAt: at, fault, answer, headers } = record
  return {
    ...messageView(record, mask),
    at,
    fault: fault && faultInWords(fault),
    answer: answer && messageView(answer, mask, mask.answerTo(headers)),
  }
}

/** @param hide - hides what an answer repeats */
function messageView(message: RecordedMessage, mask: Mask, hide = (text: string) => text) {
  const { headers, body, bodyLength } = message
  return {
    headers: pairs(headers, (name, value) => hide(mask.header(name, value))),
    body: hide(body),
    /** How many characters the whole body has, where only its beginning was kept. */
    cutFrom: bodyLength > body.length ? bodyLength : undefined,
  }
}

export function subscriptionView(record: SubscriptionRecord, mask: Mask) {
  const { parameters, callbackUrl, ...rest } = record
  return {
    ...rest,
    callbackUrl: mask.url(callbackUrl),
    parameters: pairs(parameters, (_name, value) => mask.value(value)),
  }
}

export function faultView(planned: PlannedFault) {
  return { id: planned.id, sentence: plannedInWords(planned) }
}

function pairs(
  values: Readonly<Record<string, string>>,
  shown: (name: string, value: string) => string,
): Pair[] {
  return Object.entries(values).map(([name, value]) => [name, shown(name, value)])
}
