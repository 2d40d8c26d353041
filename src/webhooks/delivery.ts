/** The types of a delivery: a union that narrows on `notification.type`, although unknown types are legal. */
import type * as z from 'zod'
import type { DocumentedNotificationType } from '../notification-types.js'
import type { lowEnergyAgentOpenedPayloadSchema } from './schemas.js'

/** Payload schemas by `notification.type`, as {@link createDeliveryParser} and `DeliveryReceiver` take them. */
export type PayloadSchemas = Readonly<Record<string, z.core.$ZodType>>

/** No payload schemas besides the documented one. */
export type NoPayloadSchemas = Readonly<Record<never, never>>

/** The payload of a `lowEnergyAgentOpened` notification (docs/service.md, Resources). */
export type LowEnergyAgentOpenedPayload = z.output<typeof lowEnergyAgentOpenedPayloadSchema>

/**
 * A notification (docs/service.md, Resources).
 *
 * `Notification` is one of any type: comparing `type` with a documented name narrows `payload`, which is
 * `Record<string, unknown>` where the fields are not documented. `Notification<'lowEnergyAgentOpened'>` is one of that
 * type alone. The second parameter holds payload schemas of your own: `Notification<string, typeof payloads>`.
 *
 * A name that is not documented, and has no schema in `Payloads`, cannot be compared with `type` directly, because a plain
 * `string` would stop the union from narrowing. Widen `type` first: `const type: string = notification.type`.
 */
export type Notification<
  Type extends string = string,
  Payloads extends PayloadSchemas = NoPayloadSchemas,
> = string extends Type ? NotificationOfAnyType<Payloads> : NotificationOfEach<Type, Payloads>

/** The body of a callback (docs/service.md, Resources). */
export interface Delivery<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /** Identifier of the subscription that the notification belongs to. */
  subscriptionId: number
  /** What happened; comparing its `type` narrows its `payload`. */
  notification: Notification<string, Payloads>
}

/** Distributes over a union of types. */
type NotificationOfEach<Type extends string, Payloads extends PayloadSchemas> = Type extends string
  ? NotificationFields<Type, PayloadOf<Type, Payloads>>
  : never

type NotificationOfAnyType<Payloads extends PayloadSchemas> =
  | NotificationOfEach<TypeWithSchema<Payloads>, Payloads>
  | NotificationFields<
      Exclude<DocumentedNotificationType, TypeWithSchema<Payloads>> | UndocumentedNotificationType,
      Record<string, unknown>
    >

/**
 * The type-level stand-in for every value of `notification.type` that has no name here; the values themselves are any
 * strings. A plain `string` would swallow the other members and stop the union from narrowing.
 */
type UndocumentedNotificationType = `<undocumented type: ${string}>`

type TypeWithSchema<Payloads extends PayloadSchemas> = (keyof Payloads & string) | 'lowEnergyAgentOpened'

/** A user's schema for the documented type replaces the documented one. */
type PayloadOf<Type extends string, Payloads extends PayloadSchemas> = Type extends keyof Payloads
  ? z.output<Payloads[Type]>
  : Type extends 'lowEnergyAgentOpened'
    ? LowEnergyAgentOpenedPayload
    : Record<string, unknown>

/** A type and not an interface, so that a user's declaration files can spell out its fields. */
type NotificationFields<Type extends string, Payload> = {
  /** Unique identifier of the notification (UUID-shaped). */
  id: string
  /**
   * When it happened, in milliseconds since 1970-01-01 00:00:00 UTC. The unit comes from the service's public
   * developer pages.
   */
  time: number
  /** Version of the notification object format, e.g. `1.0`. New versions are not refused. */
  ver: string
  /** What kind of notification it is; narrows the payload. */
  type: Type
  /** Content that depends on the type. */
  payload: Payload
}
