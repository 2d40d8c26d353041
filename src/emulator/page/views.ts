/** From what the emulator records to what the page shows. */
import * as z from 'zod'
import type { RecordedCallback } from '../callbacks/callback-log.js'
import type { PlannedFault } from '../service/faults.js'
import type { RecordedRequest } from '../service/request-log.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import type { CallbackView, PlannedFaultView, RequestView, SubscriptionView } from './feed.js'
import { mask, maskHeaders, maskParameters, maskRequestBody, maskUrl } from './mask.js'

export function requestView(id: number, record: RecordedRequest): RequestView {
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

export function callbackView(
  id: number,
  record: RecordedCallback,
  subscription: SubscriptionView | undefined,
): CallbackView {
  const headers = maskHeaders(record.headers)
  const callbackUrl = maskUrl(record.callbackUrl)
  const { type, username } = about(record.body)
  const user = username ?? (subscription?.usernames.length === 1 ? subscription.usernames[0] : undefined)
  const { subscriptionId, body, bodyLength } = record
  return {
    ...{ kind: 'callback', id, at: record.startedAt, subscriptionId, callbackUrl, type },
    ...(user !== undefined && { username: user }),
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
    parameters: maskParameters(record.parameters),
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
  return fault.reset === 'before-processing'
    ? 'connection reset before processing'
    : 'connection reset after processing'
}

function hasMasked(headers: readonly { value: string }[]): boolean {
  return headers.some(({ value }) => value.includes(mask))
}

const deliverySchema = z.object({
  notification: z.object({
    type: z.string(),
    payload: z.object({ username: z.string().optional().catch(undefined) }),
  }),
})

/** Type and user of a delivery's body. One that was cut is no JSON any more, but has the type near its beginning. */
function about(body: string): { type: string; username: string | undefined } {
  try {
    const { type, payload } = deliverySchema.parse(JSON.parse(body)).notification
    return { type, username: payload.username }
  } catch {
    return { type: /"type":"([^"\\]+)"/.exec(body)?.[1] ?? 'unknown', username: undefined }
  }
}
