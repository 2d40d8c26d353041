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
export type RequestView = ReturnType<typeof requestView>
export type CallbackView = ReturnType<typeof callbackView>
export type NoteView = ReturnType<typeof noteView>
export type EndView = Extract<NoteView, { kind: 'ended' }>
export type EntryView = RequestView | CallbackView | NoteView
export type AnswerView = ReturnType<typeof answerView>
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

export function entryView(entry: HistoryEntry, mask: Mask): EntryView {
  if (entry.kind === 'request') return requestView(entry.number, entry.record, mask)
  return entry.kind === 'callback' ? callbackView(entry.number, entry.record, mask) : noteView(entry, mask)
}

function requestView(id: number, record: RecordedRequest, mask: Mask) {
  const { operation, method, headers, subscriptionId, refusal } = record
  return {
    kind: 'request' as const,
    ...exchangeView(id, record, mask),
    ...{ operation, method, subscriptionId, refusal },
    target: mask.url(record.path),
    body: mask.form(headers['content-type'], record.body),
  }
}

function callbackView(id: number, record: RecordedCallback, mask: Mask) {
  const { subscriptionId, notificationId, type, username, body } = record
  return {
    kind: 'callback' as const,
    ...exchangeView(id, record, mask),
    ...{ subscriptionId, notificationId, type, username, body },
    method: 'POST',
    target: mask.url(record.callbackUrl),
  }
}

function exchangeView(id: number, record: RecordedRequest | RecordedCallback, mask: Mask) {
  const { startedAt: at, status, error, durationMs, fault, answer, headers } = record
  return {
    ...{ id, at, status, error, durationMs },
    cutFrom: cutFrom(record),
    headers: pairs(headers, mask.header),
    fault: fault && faultInWords(fault),
    answer: answer && answerView(answer, headers, mask),
  }
}

function answerView(answer: RecordedMessage, sent: RecordedRequest['headers'], mask: Mask) {
  const masked = mask.answerTo(sent)
  return {
    headers: pairs(answer.headers, (name, value) => masked(mask.header(name, value))),
    body: masked(answer.body),
    cutFrom: cutFrom(answer),
  }
}

/** How many characters the whole body has, where only its beginning was kept. */
function cutFrom({ body, bodyLength }: Pick<RecordedMessage, 'body' | 'bodyLength'>): number | undefined {
  return bodyLength > body.length ? bodyLength : undefined
}

type Note = Extract<HistoryEntry, { kind: 'ended' | 'tokens-revoked' }>

function noteView(entry: Note, mask: Mask) {
  const { number: id, at } = entry
  if (entry.kind === 'tokens-revoked') return { kind: entry.kind, id, at }
  const { kind, reason } = entry
  return { kind, id, at, reason, subscription: subscriptionView(entry.subscription, mask) }
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
