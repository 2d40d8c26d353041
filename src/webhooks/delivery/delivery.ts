/** The types of a delivery: a union that narrows on `notification.type`, although unknown types are legal. */
import type * as z from 'zod'
import type { DocumentedNotificationType } from '../../notification-types.js'
import type { documentedPayloadSchemas, lowEnergyAgentOpenedPayloadSchema } from './payload-schemas.js'

/** Payload schemas by `notification.type`, as {@link createDeliveryParser} takes them. */
export type PayloadSchemas = Readonly<Record<string, z.core.$ZodType>>

/** No payload schemas besides those of the interface document. */
export type NoPayloadSchemas = Readonly<Record<never, never>>

/** A notification of one type (interface.md section 2.3). */
export interface NotificationWith<Type extends string, Payload> {
  /** Unique identifier of the notification (UUID-shaped). */
  id: string
  /**
   * When it happened, in milliseconds since 1970-01-01 00:00:00 UTC. The unit comes from the service's public
   * developer pages, not from the interface document.
   */
  time: number
  /** Version of the notification object format, e.g. `1.0`. New versions are not refused (section 9). */
  ver: string
  /** What kind of notification it is; narrows the payload. */
  type: Type
  /** Content that depends on the type. */
  payload: Payload
}

/**
 * The type-level stand-in for every value of `notification.type` that has no name here. At run time it is any
 * string. A plain `string` would swallow the other members and stop the union from narrowing.
 *
 * To compare with a value that is not documented, widen first: `const type: string = notification.type`. Or
 * give its payload a schema with {@link createDeliveryParser}: that makes the name known.
 */
export type UndocumentedNotificationType = `<undocumented type: ${string}>`

/** A notification whose payload has no schema: every type but those of `KnownType`. */
export type OtherNotification<KnownType extends string = 'lowEnergyAgentOpened'> = NotificationWith<
  Exclude<DocumentedNotificationType, KnownType> | UndocumentedNotificationType,
  Record<string, unknown>
>

/** The payload of a `lowEnergyAgentOpened` notification (interface.md section 2.3). */
export type LowEnergyAgentOpenedPayload = z.output<typeof lowEnergyAgentOpenedPayloadSchema>

/** A `lowEnergyAgentOpened` notification (interface.md section 2.3). */
export type LowEnergyAgentOpenedNotification = NotificationWith<
  'lowEnergyAgentOpened',
  LowEnergyAgentOpenedPayload
>

/** A user's schema for a documented type replaces the documented one. */
type KnownPayloadSchemas<Payloads extends PayloadSchemas> = Payloads &
  Omit<typeof documentedPayloadSchemas, keyof Payloads>

type KnownType<Payloads extends PayloadSchemas> = keyof KnownPayloadSchemas<Payloads> & string

/** The notifications that a parser with these payload schemas returns: a union discriminated by `type`. */
export type NotificationOf<Payloads extends PayloadSchemas> =
  | {
      [Type in KnownType<Payloads>]: NotificationWith<Type, z.output<KnownPayloadSchemas<Payloads>[Type]>>
    }[KnownType<Payloads>]
  | OtherNotification<KnownType<Payloads>>

/** The deliveries that a parser with these payload schemas returns. */
export interface DeliveryOf<Payloads extends PayloadSchemas> {
  /** Identifier of the subscription that the notification belongs to. */
  subscriptionId: number
  /** What happened; comparing its `type` narrows its `payload`. */
  notification: NotificationOf<Payloads>
}

/**
 * One notification (interface.md section 2.3). Comparing `type` narrows `payload`; types without a documented
 * payload have `Record<string, unknown>`.
 */
export type Notification = NotificationOf<NoPayloadSchemas>

/** The body of a callback (interface.md section 2.3). */
export type Delivery = DeliveryOf<NoPayloadSchemas>
