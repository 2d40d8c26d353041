/**
 * The delivery body (docs/service.md, Delivery) as zod schemas, to compose with: `z.array(deliverySchema)`.
 *
 * They require what the service promises and nothing more. Unknown fields, unknown values of
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
 * One notification (docs/service.md, Delivery). A `lowEnergyAgentOpened` has the payload of
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
    // z.toJSONSchema cannot see into a refinement. A getter, so that only who asks for it pays for it.
    get anyOf() {
      const { $schema: _, ...payload } = z.toJSONSchema(lowEnergyAgentOpenedPayloadSchema)
      return [{ properties: { type: { not: { const: documentedType } } } }, { properties: { payload } }]
    },
    // The refinement proves which payload goes with which type; zod has no way to say so in types.
  }) as z.ZodType as z.ZodType<Notification, Notification>

/** The JSON body of a callback (docs/service.md, Delivery): the same verdict as `parseDelivery`. */
export const deliverySchema = deliverySchemaOf(notificationSchema) as z.ZodType as z.ZodType<
  // Loose at run time; the type stays that of `parseDelivery`, without an index signature.
  Delivery,
  Delivery
>

function deliverySchemaOf<Schema extends z.ZodType>(notification: Schema) {
  return z.looseObject({ subscriptionId: z.int(), notification })
}
