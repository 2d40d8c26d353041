/** Sample deliveries: to test handlers without a server. */
import {
  type DocumentedNotificationType,
  documentedPayloadOf,
  type TypeWithDocumentedPayload,
} from '../notification-types.js'
import { jsonOf } from './body.js'
import type { DeliveryContext } from './handlers.js'
import { headerOf } from './headers.js'
import { createDeliveryParser } from './parse.js'
import type { NoPayloadSchemas, NotificationFields, PayloadOf, PayloadSchemas } from './schemas.js'

/** The values that replace those of the sample. */
export interface SampleDeliveryOverrides<
  Payload = Record<string, unknown>,
  Payloads extends PayloadSchemas = NoPayloadSchemas,
> {
  /** Payload schemas, as the receiver has them. Default: only the documented payloads. */
  readonly payloads?: Payloads | undefined
  /** Identifier of the subscription. Default: 1. */
  readonly subscriptionId?: number | undefined
  /** Fields that replace the sample's. If no fields are documented, any are allowed. Default: only the sample's. */
  readonly payload?: Payload | undefined
  /** Identifier of the notification. Default: a new random UUID. */
  readonly id?: string | undefined
  /** When it happened, in milliseconds since 1970. Default: now. */
  readonly time?: number | undefined
  /** Headers of the callback, besides `content-type`: `context.header` reads them. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A callback as the service would send it, from {@link sampleDelivery}. */
export interface SampleDelivery<Type extends string = string, Payload = Record<string, unknown>> {
  /** The delivery: `delivery.notification` is what a handler gets. */
  readonly delivery: {
    subscriptionId: number
    notification: NotificationFields<Type, Payload>
  }
  /** The JSON text of the delivery. */
  readonly body: string
  readonly headers: Record<string, string>
  /** The second argument of a handler. */
  readonly context: Omit<DeliveryContext, 'delivery'> & Pick<SampleDelivery<Type, Payload>, 'delivery'>
}

/** What {@link SampleDeliveryOverrides} takes as the payload of a type: the input of a user's schema. */
type GivenPayload<Type extends string, Payloads extends PayloadSchemas> = Type extends keyof Payloads
  ? NonNullable<Payloads[Type]['~standard']['types']> extends { readonly input: infer Input }
    ? Input
    : object
  : Partial<PayloadOf<Type, Payloads>>

/** The payload of a sample: where no fields are known, it has the given ones. */
type SamplePayload<Type extends string, Payloads extends PayloadSchemas, Given> = Type extends
  | keyof Payloads
  | TypeWithDocumentedPayload
  ? PayloadOf<Type, Payloads>
  : Record<string, unknown> & Given

/**
 * Makes a valid delivery for tests: of a handler (`delivery.notification`, `context`) or of a route (`body`,
 * `headers`). Its payload is the documented one of its type (docs/service.md, Resources), or an empty object.
 *
 * @throws `InvalidDeliveryError` if the result with the overrides is no delivery
 *
 * @example
 * ```ts
 * const { delivery, context } = sampleDelivery('lowEnergyAgentOpened', { payload: { username: 'bob' } })
 * await onLowEnergy(delivery.notification, context)
 * ```
 */
export function sampleDelivery<
  Type extends DocumentedNotificationType | (keyof Payloads & string),
  Given extends GivenPayload<Type, Payloads>,
  Payloads extends PayloadSchemas = NoPayloadSchemas,
>(
  type: Type,
  overrides: SampleDeliveryOverrides<Given, Payloads> = {},
): SampleDelivery<Type, SamplePayload<Type, Payloads, Given>> {
  const { payloads = {}, subscriptionId = 1, id = crypto.randomUUID(), time = Date.now() } = overrides
  const headers = { 'content-type': 'application/json', ...overrides.headers }
  const sample = Object.hasOwn(payloads, type) ? {} : samplePayload(type)
  const payload = { ...sample, ...Object(overrides.payload) }
  const body = jsonOf({ subscriptionId, notification: { id, time, ver: '1.0', type, payload } })
  // The notification has the type it was made of, and a payload that was parsed as one of that type.
  const delivery = createDeliveryParser({ payloads }).parse(body) as unknown as SampleDelivery<
    Type,
    SamplePayload<Type, Payloads, Given>
  >['delivery']
  const context = { subscriptionId, delivery, header: (name: string) => headerOf(headers, name) }
  return { delivery, body, headers, context }
}

/** A payload of this type, as the service could send it: a new object. */
export function samplePayload(type: string): Record<string, unknown> {
  return { ...documentedPayloadOf(type)?.sample }
}
