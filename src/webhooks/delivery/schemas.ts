/**
 * The delivery body (docs/service.md, Resources) as zod schemas, to compose with: `z.array(deliverySchema)`.
 *
 * The schemas require what the service promises and nothing more. Unknown fields, unknown values of
 * `notification.type` and new values of `ver` are kept.
 */
import * as z from 'zod'
import type { Delivery, Notification } from './delivery.js'
import { documentedType, integer, lowEnergyAgentOpenedPayloadSchema, text } from './payload-schemas.js'

const anyNotificationSchema = z.looseObject({
  id: text,
  time: integer,
  ver: text,
  type: text,
  payload: z.looseObject({}),
})

/** A delivery whose payload is any object: what holds for every `notification.type`. */
export const anyDeliverySchema = deliverySchemaOf(anyNotificationSchema)

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
  }) as z.ZodType as z.ZodType<Notification, Notification>

/** The JSON body of a callback (docs/service.md, Resources): refuses what `parseDelivery` refuses, and nothing else. */
export const deliverySchema = deliverySchemaOf(notificationSchema) as z.ZodType as z.ZodType<
  // The schema keeps unknown fields; its type is that of `parseDelivery`, without an index signature.
  Delivery,
  Delivery
>

function deliverySchemaOf<Schema extends z.ZodType>(notification: Schema) {
  return z.looseObject({ subscriptionId: z.int(), notification })
}
