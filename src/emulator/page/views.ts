/**
 * From what the emulator records to what the page shows. Known harmless text stays and everything else is masked: an
 * associated parameter can have any name, and carries the receiver's secret (docs/service.md, Resources).
 */
import type { HistoryEntry, RecordedCallback, RecordedRequest } from '../activity.js'
import type { PlannedFault } from '../faults.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import type { PageHost } from './host.js'
import type {
  CallbackView,
  EntryView,
  MaskedHeader,
  PlannedFaultView,
  RequestView,
  ServiceView,
  SubscriptionView,
  Variable,
} from './protocol.js'

const mask = '••••••••'

/** How a client finds this emulator. */
export function serviceView(host: PageHost): ServiceView {
  const { baseUrl, authUrl, domain, clientId } = host.emulator
  const variables = variablesOf(host).map(({ name, value }) => ({
    name,
    value: harmlessVariables.has(name) ? value : mask,
  }))
  return { baseUrl, authUrl, domain, clientId, variables, allowInsecureLoopback: host.allowInsecureLoopback }
}

/** The environment variables of a client, with their secrets. */
export function variablesOf({ emulator, environment }: PageHost): Variable[] {
  const variables = {
    NOTIFICATION_BASE_URL: emulator.baseUrl,
    NOTIFICATION_AUTH_URL: emulator.authUrl,
    NOTIFICATION_DOMAIN: emulator.domain,
    NOTIFICATION_CLIENT_ID: emulator.clientId,
    NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
    // The name under which a browser saves the certificate that the page offers.
    NOTIFICATION_CA_FILE: 'emulator-ca.pem',
    ...environment,
  }
  return asPairs(variables)
}

/** Views of entries that did not change: the body of each is masked once. */
const entryViews = new WeakMap<HistoryEntry, EntryView>()

export function entryView(entry: HistoryEntry): EntryView {
  const view = entryViews.get(entry) ?? newEntryView(entry)
  entryViews.set(entry, view)
  return view
}

function newEntryView(entry: HistoryEntry): EntryView {
  const { number: id } = entry
  switch (entry.kind) {
    case 'request':
      return requestView(id, entry.record)
    case 'callback':
      return callbackView(id, entry.record)
    case 'ended':
      return {
        ...{ kind: 'note', id, at: entry.at, note: 'ended' },
        ...{ subscriptionId: entry.subscriptionId, reason: entry.reason },
      }
    case 'tokens-revoked':
      return { kind: 'note', id, at: entry.at, note: 'tokens-revoked' }
  }
}

function requestView(id: number, record: RecordedRequest): RequestView {
  const headers = maskHeaders(record.headers)
  const body = maskRequestBody(record.headers['content-type'], record.body)
  const path = maskUrl(record.path)
  const { operation, method, bodyLength, refusal } = record
  const hasSecrets = body !== record.body || path !== record.path || hasMasked(headers)
  return {
    ...{ kind: 'request', id, at: record.startedAt, operation, method, path, headers, body, bodyLength },
    ...outcome(record),
    ...(refusal && { refusal }),
    hasSecrets,
  }
}

function callbackView(id: number, record: RecordedCallback): CallbackView {
  const headers = maskHeaders(record.headers)
  const callbackUrl = maskUrl(record.callbackUrl)
  const { subscriptionId, type, username, body, bodyLength } = record
  return {
    ...{ kind: 'callback', id, at: record.startedAt, subscriptionId, callbackUrl, type, username },
    ...{ headers, body, bodyLength },
    ...outcome(record),
    hasSecrets: callbackUrl !== record.callbackUrl || hasMasked(headers),
  }
}

export function subscriptionView(record: SubscriptionRecord): SubscriptionView {
  const { subscriptionId, notificationTypes, usernames, consecutiveFailures } = record
  return {
    ...{ subscriptionId, notificationTypes, usernames, consecutiveFailures },
    callbackUrl: maskUrl(record.callbackUrl),
    parameters: Object.keys(record.parameters).map((name) => ({ name, value: mask })),
  }
}

export function faultView(planned: PlannedFault): PlannedFaultView {
  const { operation, fault, remaining } = planned
  const subscriptionId = 'subscriptionId' in planned ? planned.subscriptionId : undefined
  return {
    ...{ operation, fault: inWords(fault), remaining },
    ...(subscriptionId !== undefined && { subscriptionId }),
  }
}

function outcome({ status, error, fault, durationMs }: RecordedRequest | RecordedCallback) {
  return {
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error }),
    ...(fault !== undefined && { fault: inWords(fault) }),
    ...(durationMs !== undefined && { durationMs }),
  }
}

function inWords(fault: PlannedFault['fault']): string {
  if ('status' in fault) return `status ${fault.status}`
  if ('delayMs' in fault) return `delay of ${fault.delayMs} ms`
  if ('malformedBody' in fault) return 'malformed body'
  return fault.reset === 'before-processing' ? 'reset before processing' : 'reset after processing'
}

function hasMasked(headers: readonly { value: string }[]): boolean {
  return headers.some(({ value }) => value.includes(mask))
}

const harmlessHeaders = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'keep-alive',
  'origin',
  'pragma',
  'sec-fetch-mode',
  'te',
  'traceparent',
  'transfer-encoding',
  'user-agent',
  'x-request-id',
])

const harmlessVariables = new Set([
  'NOTIFICATION_BASE_URL',
  'NOTIFICATION_AUTH_URL',
  'NOTIFICATION_DOMAIN',
  'NOTIFICATION_CLIENT_ID',
  'NOTIFICATION_CA_FILE',
])

const harmlessFields = new Set([
  'callback_url',
  'client_id',
  'grant_type',
  'notification_type',
  'recreateIfExists',
  'scope',
  'username',
])

/** Masks every header that is not known to be harmless. The scheme of `authorization` stays readable. */
function maskHeaders(headers: Readonly<Record<string, string>>): MaskedHeader[] {
  return asPairs(headers).map(({ name, value }) => ({ name, value: maskHeader(name, value) }))
}

function maskHeader(name: string, value: string): string {
  if (harmlessHeaders.has(name.toLowerCase())) return value
  const [, scheme] = /^(basic|bearer) /i.exec(value) ?? []
  return name.toLowerCase() === 'authorization' && scheme !== undefined ? `${scheme} ${mask}` : mask
}

/** A form keeps its names and the values of the documented fields; a body of another kind is masked as a whole. */
function maskRequestBody(contentType: string | undefined, body: string): string {
  if (body === '') return ''
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) return mask
  return maskPairs(body, (name, value) => {
    if (name === 'callback_url') return encodeURIComponent(maskUrl(decode(value) ?? mask))
    return harmlessFields.has(name) ? value : mask
  })
}

/** Masks a password and the values of a query: both can be what a receiver checks. */
export function maskUrl(url: string): string {
  const withoutPassword = url.replace(/^([a-z][a-z\d+.-]*:\/\/)[^/?#@]*@/i, `$1${mask}@`)
  const [, path = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(withoutPassword) ?? []
  return query === undefined ? path + fragment : `${path}?${maskPairs(query, () => mask)}${fragment}`
}

/** Names and values of an object, in its order. */
export function asPairs(values: Readonly<Record<string, string>>): { name: string; value: string }[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }))
}

function maskPairs(pairs: string, maskValue: (name: string, value: string) => string): string {
  return pairs
    .split('&')
    .map((pair) => {
      const equals = pair.indexOf('=')
      // A text without a name may be the secret itself.
      if (equals === -1) return pair === '' ? '' : mask
      const name = pair.slice(0, equals)
      return `${name}=${maskValue(decode(name) ?? name, pair.slice(equals + 1))}`
    })
    .join('&')
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
