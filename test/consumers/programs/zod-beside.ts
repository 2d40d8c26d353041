/** What an app does with schemas of its own version of zod. */
import { createDeliveryParser, DeliveryReceiver } from 'notification-subscriber/webhooks'
import * as z from 'zod'
import * as mini from 'zod/mini'

const payloads = {
  cxScoreUpdated: z.object({ score: z.coerce.number() }),
  topicKeywordEvent: mini.object({ word: mini.string() }),
}
export const parser = createDeliveryParser({ payloads })
export const receiver = new DeliveryReceiver({ allowUnauthenticated: true, payloads })
receiver.on('cxScoreUpdated', ({ payload }) => payload.score.toFixed())

const notification = { id: 'a', time: 1, ver: '1.0', type: 'cxScoreUpdated', payload: { score: '4' } }
const parsed = parser.parse({ subscriptionId: '7', notification })
if (parsed.notification.type === 'cxScoreUpdated') {
  console.log(parsed.subscriptionId, parsed.notification.type, parsed.notification.payload.score)
}
