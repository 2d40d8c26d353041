import type { IncomingHttpHeaders } from 'node:http'
import {
  createDeliveryParser,
  type Delivery,
  type deliverySchema,
  type LowEnergyAgentOpenedPayload,
  lowEnergyAgentOpenedPayloadSchema,
  type Notification,
  type notificationSchema,
  verifySecrets,
} from 'notification-subscriber/webhooks'
import { describe, expectTypeOf, test } from 'vitest'
import * as z from 'zod'
import * as mini from 'zod/mini'

type AnyPayload = Record<string, unknown>

declare const delivery: Delivery

describe('notification.type', () => {
  test('narrows the payload, through the delivery and after destructuring', () => {
    if (delivery.notification.type === 'lowEnergyAgentOpened') {
      expectTypeOf(delivery.notification).toEqualTypeOf<Notification<'lowEnergyAgentOpened'>>()
      type Fields = { callId: string; username: string; bTime: number; nTime: number; idx: number }
      expectTypeOf<Pick<LowEnergyAgentOpenedPayload, keyof Fields>>().toEqualTypeOf<Fields>()
    } else {
      expectTypeOf(delivery.notification.payload).toEqualTypeOf<AnyPayload>()
    }
    const { type, payload } = delivery.notification
    if (type === 'lowEnergyAgentOpened') expectTypeOf(payload.callId).toEqualTypeOf<string>()
    else expectTypeOf(payload).toEqualTypeOf<AnyPayload>()
  })

  test('compares with documented types, and as a string with anything', () => {
    const type: string = delivery.notification.type
    expectTypeOf(type === 'somethingNew').toEqualTypeOf<boolean>()
    // @ts-expect-error A name that is not documented: widen to string first, or give its payload a schema.
    expectTypeOf(delivery.notification.type === 'somethingNew').toEqualTypeOf<boolean>()
  })

  test('is needed for fields of the payload, of which none may be misspelt', () => {
    const { notification } = delivery
    expectTypeOf(notification.payload.callId).toEqualTypeOf<unknown>()
    // @ts-expect-error No field of the documented payload: which type the notification has is not known here.
    expectTypeOf(notification.payload.score).toEqualTypeOf<unknown>()
    if (notification.type !== 'lowEnergyAgentOpened') return
    // @ts-expect-error It is called username.
    expectTypeOf(notification.payload.usernme).toEqualTypeOf<string>()
    // @ts-expect-error It is called callId.
    expectTypeOf(lowEnergyAgentOpenedPayloadSchema.parse({}).callid).toEqualTypeOf<string>()
  })
})

test('the schemas have the types of the parser', () => {
  expectTypeOf<z.output<typeof deliverySchema>>().toExtend<Delivery>()
  expectTypeOf<z.output<typeof notificationSchema>['type']>().toEqualTypeOf<string>()
  expectTypeOf<z.input<typeof deliverySchema>['subscriptionId']>().toEqualTypeOf<number | string>()
  type Payload = z.output<typeof lowEnergyAgentOpenedPayloadSchema>
  expectTypeOf<Payload>().toEqualTypeOf<LowEnergyAgentOpenedPayload>()
})

test('createDeliveryParser gives each type the output of its schema, and takes schemas only', () => {
  const payloads = {
    cxScoreUpdated: z.object({ score: z.coerce.number(), trend: z.string().default('flat') }),
    somethingNew: mini.object({ on: mini.boolean() }),
  }
  const { notification } = createDeliveryParser({ payloads }).parse('')
  switch (notification.type) {
    case 'cxScoreUpdated':
      expectTypeOf(notification.payload).toEqualTypeOf<{ score: number; trend: string }>()
      // @ts-expect-error It is called score.
      expectTypeOf(notification.payload.scroe).toEqualTypeOf<number>()
      break
    case 'somethingNew':
      expectTypeOf(notification.payload).toEqualTypeOf<{ on: boolean }>()
      break
    case 'lowEnergyAgentOpened':
      expectTypeOf(notification.payload).toEqualTypeOf<LowEnergyAgentOpenedPayload>()
      break
    default:
      expectTypeOf(notification.payload).toEqualTypeOf<AnyPayload>()
  }
  // @ts-expect-error A function is no schema.
  expectTypeOf(createDeliveryParser).toBeCallableWith({ payloads: { cxScoreUpdated: () => true } })
})

test('verifySecrets takes the headers of the web, of Node.js and of Lambda', () => {
  const lambda: Record<string, string | undefined> = {}
  const node: IncomingHttpHeaders = {}
  for (const headers of [new Headers(), lambda, node]) {
    expectTypeOf(verifySecrets(headers, { token: ['a', 'b'] })).toEqualTypeOf<boolean>()
  }
})
