/**
 * The delivery body (docs/service.md, Resources): its types, a union that narrows on `notification.type` although unknown
 * types are legal; and zod schemas, which require what the service promises and keep everything else.
 */
import * as z from 'zod'
import {
  type DocumentedNotificationType,
  type DocumentedPayload,
  documentedPayloadOf,
  integer,
  type TypeWithDocumentedPayload,
} from '../notification-types.js'
import { numericId, numericIdPattern, ownMessages } from '../shared/validation.js'

/**
 * Payload schemas by `notification.type`: synchronous ones of any library that implements Standard Schema
 * (https://standardschema.dev), such as zod, valibot and arktype.
 */
export type PayloadSchemas = Readonly<
  Record<
    string,
    {
      readonly '~standard': z.core.$ZodStandardSchema<z.core.$ZodType>
    }
  >
>

/** No payload schemas besides the documented ones. */
export type NoPayloadSchemas = Readonly<Record<never, never>>

/**
 * A notification (docs/service.md, Resources).
 *
 * `Notification` is one of any type, with any object as its payload: for functions that take every notification.
 * `Notification<'lowEnergyAgentOpened'>` is one of that type alone. The second parameter holds payload schemas of your own:
 * comparing the `type` of a `Notification<string, typeof payloads>` with a name narrows its `payload`, which is
 * `Record<string, unknown>` where the fields are not known. Without schemas that is `Delivery['notification']`.
 *
 * A name that is not documented, and has no schema in `Payloads`, cannot be compared with such a `type` directly, because a
 * plain `string` would stop the union from narrowing. Widen `type` first: `const type: string = notification.type`.
 */
export type Notification<
  Type extends string = string,
  Payloads extends PayloadSchemas = PayloadSchemas,
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

type NotificationOfAnyType<Payloads extends PayloadSchemas> = string extends keyof Payloads
  ? NotificationFields<DocumentedNotificationType | (string & {}), Record<string, unknown>>
  :
      | NotificationOfEach<TypeWithSchema<Payloads>, Payloads>
      | NotificationFields<
          Exclude<DocumentedNotificationType, TypeWithSchema<Payloads>> | UndocumentedNotificationType,
          Record<string, unknown>
        >

/** Stands for every other type. A plain `string` would swallow the other members and stop the union from narrowing. */
type UndocumentedNotificationType = `<undocumented type: ${string}>`

type TypeWithSchema<Payloads extends PayloadSchemas> = (keyof Payloads & string) | TypeWithDocumentedPayload

/** The types that have a schema; `never` for {@link PayloadSchemas} itself, which may have a schema for any type. */
type KnownKey<Payloads extends PayloadSchemas> = string extends keyof Payloads ? never : keyof Payloads

/** A user's schema for a type replaces the documented one. */
export type PayloadOf<Type extends string, Payloads extends PayloadSchemas> =
  Type extends KnownKey<Payloads>
    ? NonNullable<Payloads[Type]['~standard']['types']>['output']
    : Type extends TypeWithDocumentedPayload
      ? DocumentedPayload<Type>
      : Record<string, unknown>

/** A type and not an interface, so that a user's declaration files can spell out its fields. */
export type NotificationFields<Type extends string, Payload> = {
  /** Unique identifier of the notification (UUID-shaped). */
  id: string
  /** When it happened, in milliseconds since 1970-01-01 UTC † (docs/service.md, Resources). */
  time: number
  /** Version of the notification object format, e.g. `1.0`. New versions are not refused. */
  ver: string
  /** What kind of notification it is; narrows the payload. */
  type: Type
  payload: Payload
}

const anyNotificationSchema = z.looseObject({
  id: z.string(),
  time: integer,
  ver: z.string(),
  type: z.string(),
  payload: z.looseObject({}),
})

/** A delivery whose payload is any object: what holds for every `notification.type`. */
export const anyDeliverySchema = z.looseObject({
  subscriptionId: z.int(),
  notification: anyNotificationSchema,
})

/** One notification with any object as its payload, to extend. {@link deliverySchema} also validates the documented payloads. */
export const notificationSchema = anyNotificationSchema as z.ZodObject as z.ZodObject<
  {
    [Field in keyof NotificationFields<string, object>]: z.ZodType<
      NotificationFields<string, Record<string, unknown>>[Field]
    >
  },
  z.core.$strip
>

const documentedNotificationSchema = anyNotificationSchema.superRefine(({ type, payload }, context) => {
  const { error } = documentedPayloadOf(type)?.schema.safeParse(payload, ownMessages) ?? {}
  for (const issue of error?.issues ?? []) {
    context.addIssue({ ...issue, path: ['payload', ...issue.path] })
  }
  // The refinement proves which payload goes with which type; zod has no way to say so in types.
}) as z.ZodType as z.ZodType<Delivery['notification']>

/**
 * The JSON body of a callback (docs/service.md, Resources): refuses what `parseDelivery` refuses, and nothing else.
 *
 * @example
 * ```ts
 * import * as z from 'zod'
 *
 * const queued = deliverySchema.extend({ queuedAt: z.number() })
 * ```
 */
export const deliverySchema = z.looseObject({
  subscriptionId: z
    .union([z.int(), z.string().regex(numericIdPattern)])
    .transform(numericId)
    .pipe(z.int()),
  notification: documentedNotificationSchema,
  // Keeps unknown fields; its type is that of `parseDelivery`, without an index signature.
}) as z.ZodObject as z.ZodObject<
  {
    /** A number, or its digits, which become the number. */
    subscriptionId: z.ZodType<number, number | string>
    /** The notification, its documented payload included. */
    notification: z.ZodType<Delivery['notification']>
  },
  z.core.$strip
>
