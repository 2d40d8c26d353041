/** What an app does with the exported schemas, and with schemas of its own version of zod. */
import {
  createDeliveryParser,
  DeliveryReceiver,
  deliverySchema,
  notificationSchema,
} from 'notification-subscriber/webhooks'
import * as z from 'zod'
import * as mini from 'zod/mini'

export const batch = z.array(deliverySchema)
export const queued = deliverySchema.extend({ queuedAt: z.number() })
export const envelope = z.object({ delivery: deliverySchema, at: z.number() })
export const small = mini.object({ delivery: deliverySchema })
export const picked = deliverySchema.pick({ subscriptionId: true })
export const omitted = notificationSchema.omit({ payload: true })
export const scored = notificationSchema.extend({ payload: z.object({ score: z.number() }) })
export const json = z.toJSONSchema(deliverySchema)

const payloads = {
  cxScoreUpdated: z.object({ score: z.coerce.number() }),
  topicKeywordEvent: mini.object({ word: mini.string() }),
}
export const parser = createDeliveryParser({ payloads })
export const receiver = new DeliveryReceiver({ allowUnauthenticated: true, payloads })
receiver.on('cxScoreUpdated', ({ payload }) => payload.score.toFixed())

const notification = { id: 'a', time: 1, ver: '1.0', type: 'cxScoreUpdated', payload: { score: '4' } }
const delivery = { subscriptionId: '7', notification }
const ids: number[] = batch.parse([delivery]).map(({ subscriptionId }) => subscriptionId)
const type: string = envelope.parse({ delivery, at: 1 }).delivery.notification.type
const parsed = parser.parse(delivery).notification
if (parsed.type === 'cxScoreUpdated') console.log(ids[0], type, parsed.payload.score)
