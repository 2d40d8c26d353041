/** Sample deliveries: to test handlers without a server. */
import * as z from 'zod'
import {
  type DocumentedNotificationType,
  documentedNotificationTypes,
  documentedPayloadOf,
} from '../notification-types.js'
import { configurationError, validate } from '../shared/validation.js'
import { jsonOf } from './body.js'
import type { DeliveryContext } from './handlers.js'
import { RequestHeaders } from './headers.js'
import { parseDelivery } from './parse.js'
import type { Notification } from './schemas.js'

/** The values that replace those of the sample. */
export interface SampleDeliveryOverrides<Type extends string = string> {
  /** Identifier of the subscription. Default: 1. */
  readonly subscriptionId?: number | undefined
  /**
   * Fields of the payload, which replace the sample's. If no fields are documented, any are allowed. Default: only the
   * sample's.
   */
  readonly payload?: Partial<Notification<Type>['payload']> | undefined
  /** Identifier of the notification. Default: a new random UUID. */
  readonly id?: string | undefined
  /** When it happened, in milliseconds since 1970. Default: now. */
  readonly time?: number | undefined
  /** Headers of the callback, besides `content-type`: `context.header` reads them. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A callback as the service would send it, from {@link sampleDelivery}. */
export interface SampleDelivery<Type extends string = string> {
  /** The delivery: `delivery.notification` is what a handler gets. */
  readonly delivery: {
    /** Identifier of the subscription that the notification belongs to. */
    subscriptionId: number
    /** What happened. */
    notification: Notification<Type>
  }
  /** The JSON text of `delivery`. */
  readonly body: string
  /** The headers of the callback. */
  readonly headers: Record<string, string>
  /** The second argument of a handler. */
  readonly context: DeliveryContext
}

/**
 * Makes a valid delivery for tests: of a handler (`delivery.notification`, `context`) or of a route (`body`,
 * `headers`). Its payload is the documented one for `lowEnergyAgentOpened` (docs/service.md, Resources), and an empty
 * object for other types, whose payloads are not documented.
 *
 * @throws `InvalidDeliveryError` if the result with the overrides is no delivery, `ConfigurationError` for a type
 * or a field that is not documented
 *
 * @example
 * ```ts
 * const { delivery, context } = sampleDelivery('lowEnergyAgentOpened', { payload: { username: 'bob' } })
 * await onLowEnergy(delivery.notification, context)
 * ```
 */
export function sampleDelivery<Type extends DocumentedNotificationType>(
  type: Type,
  overrides: SampleDeliveryOverrides<Type> = {},
): SampleDelivery<Type> {
  const schema = argumentsSchema(documentedPayloadOf(type)?.sample)
  validate(schema, { type, ...overrides }, configurationError('The sample delivery cannot be made'))
  const { subscriptionId = 1, id = crypto.randomUUID(), time = Date.now() } = overrides
  const headers = { 'content-type': 'application/json', ...overrides.headers }
  const payload = { ...samplePayload(type), ...overrides.payload }
  const body = jsonOf({ subscriptionId, notification: { id, time, ver: '1.0', type, payload } })
  const delivery = parseDelivery(body)
  const requestHeaders = new RequestHeaders(headers)
  return {
    // The notification has the type it was made of, and a payload that was parsed as one of that type.
    delivery: delivery as unknown as SampleDelivery<Type>['delivery'],
    body,
    headers,
    context: { subscriptionId, delivery, header: (name) => requestHeaders.get(name) },
  }
}

/** A payload of this type, as the service could send it: a new object. */
export function samplePayload(type: string): Record<string, unknown> {
  return { ...documentedPayloadOf(type)?.sample }
}

/** Checks only the names: the values are checked with the delivery. */
function argumentsSchema(payload: object | undefined) {
  const unchecked = z.unknown().optional()
  const fields = Object.fromEntries(Object.keys(payload ?? {}).map((name) => [name, unchecked]))
  return z.strictObject({
    type: z.enum(Object.values(documentedNotificationTypes).flat()),
    subscriptionId: unchecked,
    payload: payload === undefined ? unchecked : z.strictObject(fields).optional(),
    id: unchecked,
    time: unchecked,
    headers: unchecked,
  })
}
