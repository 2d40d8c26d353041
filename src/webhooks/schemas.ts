/**
 * The delivery body (docs/service.md, Resources) as zod schemas, to compose with: `z.array(deliverySchema)`.
 *
 * The schemas require what the service promises and nothing more. Unknown fields, unknown values of
 * `notification.type` and new values of `ver` are kept.
 */
import * as z from 'zod'
import type { Notification } from './delivery.js'

/** The value of `notification.type` whose payload is documented. */
export const documentedType = 'lowEnergyAgentOpened'

/** Any text. */
const text = z.string()

/** Any integer. Not `z.int()`, which refuses integers beyond 2^53: the service is free to send those. */
const integer = z.number().refine(Number.isInteger, 'must be an integer').meta({ type: 'integer' })

const payloadSchema = z.looseObject({
  /** The call. */
  callId: text,
  /** The user (agent) that the notification is about. */
  username: text,
  /** An integer of any sign, in no documented unit. */
  bTime: integer,
  /** An integer of any sign, in no documented unit. */
  nTime: integer,
  /** An integer of any sign. */
  idx: integer,
})

/**
 * The payload of a `lowEnergyAgentOpened` notification (docs/service.md, Resources). `bTime`, `nTime` and `idx` are
 * integers of any sign, whose unit is not documented. Fields that are not named here are kept, but have no type:
 * with an index signature a misspelt name would compile.
 */
export const lowEnergyAgentOpenedPayloadSchema = payloadSchema as z.ZodObject as z.ZodObject<
  typeof payloadSchema.shape,
  z.core.$strip
>

const anyNotificationSchema = z.looseObject({
  id: text,
  time: integer,
  ver: text,
  type: text,
  payload: z.looseObject({}),
})

/** A delivery whose payload is any object: what holds for every `notification.type`. */
export const anyDeliverySchema = z.looseObject({
  subscriptionId: z.int(),
  notification: anyNotificationSchema,
})

type NotificationInternals = z.core.$ZodObjectInternals<typeof anyNotificationSchema.shape, z.core.$strip>

/** An object schema, to be extended, whose values narrow on `type`: the shape alone could not say so. */
interface NotificationSchema extends z.ZodObject<typeof anyNotificationSchema.shape, z.core.$strip> {
  /** What zod infers its types from. */
  _zod: Omit<NotificationInternals, 'input' | 'output'> & { input: Notification; output: Notification }
}

/**
 * One notification (docs/service.md, Resources). A `lowEnergyAgentOpened` has the payload of
 * {@link lowEnergyAgentOpenedPayloadSchema}, every other type any object.
 */
export const notificationSchema = anyNotificationSchema
  .superRefine((notification, context) => {
    if (notification.type !== documentedType) return
    const { error } = lowEnergyAgentOpenedPayloadSchema.safeParse(notification.payload)
    for (const issue of error?.issues ?? []) {
      context.addIssue({ ...issue, path: ['payload', ...issue.path] })
    }
  })
  .meta({
    // `z.toJSONSchema` cannot see into a refinement. A getter, so that only that function pays for this schema.
    get anyOf() {
      const { $schema: _, ...payload } = z.toJSONSchema(lowEnergyAgentOpenedPayloadSchema)
      return [{ properties: { type: { not: { const: documentedType } } } }, { properties: { payload } }]
    },
    // The refinement proves which payload goes with which type; zod has no way to say so in types.
  }) as z.ZodType as NotificationSchema

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
  subscriptionId: z.int(),
  notification: notificationSchema,
  // The schema keeps unknown fields; its type is that of `parseDelivery`, without an index signature.
}) as z.ZodObject as z.ZodObject<
  {
    /** The subscription that the notification belongs to. */
    subscriptionId: z.ZodInt
    /** The notification. */
    notification: NotificationSchema
  },
  z.core.$strip
>
