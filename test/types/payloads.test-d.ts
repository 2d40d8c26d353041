/** Types of payloads: what a function or a test of a user takes. */
import {
  type Delivery,
  DeliveryReceiver,
  type Notification,
  type NotificationHandler,
  sampleDelivery,
} from 'notification-subscriber/webhooks'
import { expectTypeOf, test } from 'vitest'
import * as z from 'zod'

const payloads = {
  brandNew: z.object({ a: z.string() }),
  cxScoreUpdated: z.object({ score: z.coerce.number() }),
  lowEnergyAgentOpened: z.object({ callId: z.number() }),
}
const receiver = new DeliveryReceiver({ allowUnauthenticated: true, payloads })

test('a function for a Notification takes every notification', () => {
  const audit = (notification: Notification) => notification.payload.anything
  receiver.onAny((notification) => audit(notification)).onAny(audit)
  new DeliveryReceiver({ allowUnauthenticated: true }).onAny(audit)
  expectTypeOf<Delivery['notification']>().toExtend<Notification>()
  expectTypeOf(audit).returns.toBeUnknown()
})

test('a handler of a type with a schema takes a sample, with payloads and without', () => {
  const onScore: NotificationHandler<'cxScoreUpdated', Pick<typeof payloads, 'cxScoreUpdated'>> = () => {}
  const onBrandNew: NotificationHandler<'brandNew', typeof payloads> = ({ payload }) => payload.a
  const onLow: NotificationHandler<'lowEnergyAgentOpened'> = ({ payload }) => payload.username
  const score = sampleDelivery('cxScoreUpdated', { payload: { score: 4.25 } })
  onScore(score.delivery.notification, score.context)
  const brandNew = sampleDelivery('brandNew', { payloads, payload: { a: 'x' } })
  onBrandNew(brandNew.delivery.notification, brandNew.context)
  const low = sampleDelivery('lowEnergyAgentOpened', { payload: { username: 'bob' } })
  onLow(low.delivery.notification, low.context)
  const onAny: NotificationHandler = () => {}
  onAny(score.delivery.notification, score.context)
  expectTypeOf(low.delivery).toExtend<Delivery>()
  expectTypeOf(sampleDelivery('cxScoreUpdated', { payloads }).delivery.notification.payload).toEqualTypeOf<{
    score: number
  }>()
  // @ts-expect-error A type that is neither documented nor in payloads.
  sampleDelivery('brandNew')
  // @ts-expect-error A field that is not documented.
  sampleDelivery('lowEnergyAgentOpened', { payload: { user: 'bob' } })
})
