import type { IncomingHttpHeaders } from 'node:http'
import {
  createDeliveryParser,
  type Delivery,
  type DocumentedNotificationType,
  deliverySchema,
  type InvalidDeliveryError,
  type LowEnergyAgentOpenedPayload,
  lowEnergyAgentOpenedPayloadSchema,
  type Notification,
  notificationSchema,
  safeParseDelivery,
  verifySecrets,
} from 'notification-subscriber/webhooks'
import { describe, expectTypeOf, test } from 'vitest'
import * as z from 'zod'
import * as mini from 'zod/mini'

type AnyPayload = Record<string, unknown>

declare const delivery: Delivery

describe('narrowing on notification.type', () => {
  test('by ===, through the delivery', () => {
    if (delivery.notification.type === 'lowEnergyAgentOpened') {
      expectTypeOf(delivery.notification).toEqualTypeOf<Notification<'lowEnergyAgentOpened'>>()
      expectTypeOf(delivery.notification.payload).toEqualTypeOf<LowEnergyAgentOpenedPayload>()
      type Fields = { callId: string; username: string; bTime: number; nTime: number; idx: number }
      expectTypeOf<Pick<LowEnergyAgentOpenedPayload, keyof Fields>>().toEqualTypeOf<Fields>()
    } else {
      expectTypeOf(delivery.notification.payload).toEqualTypeOf<AnyPayload>()
    }
  })

  test('after destructuring', () => {
    const { type, payload } = delivery.notification
    if (type === 'lowEnergyAgentOpened') expectTypeOf(payload.callId).toEqualTypeOf<string>()
    else expectTypeOf(payload).toEqualTypeOf<AnyPayload>()
  })

  test('every documented type can be compared with, and what is left is undocumented', () => {
    const documented = (type: DocumentedNotificationType) => delivery.notification.type === type
    expectTypeOf(documented).returns.toEqualTypeOf<boolean>()
    expectTypeOf<
      Exclude<Delivery['notification']['type'], DocumentedNotificationType>
    >().toEqualTypeOf<`<undocumented type: ${string}>`>()
    expectTypeOf<DocumentedNotificationType>().toExtend<Notification['type']>()
  })

  test('a type is a string, and as a string it compares with anything', () => {
    const type: string = delivery.notification.type
    expectTypeOf(type === 'somethingNew').toEqualTypeOf<boolean>()
    // @ts-expect-error A name that is not documented: widen to string first, or give its payload a schema.
    expectTypeOf(delivery.notification.type === 'somethingNew').toEqualTypeOf<boolean>()
  })

  test('fields of the payload cannot be used as anything before the type is known', () => {
    expectTypeOf(delivery.notification.payload.callId).toEqualTypeOf<unknown>()
    // @ts-expect-error No field of the documented payload: which type the notification has is not known here.
    expectTypeOf(delivery.notification.payload.score).toEqualTypeOf<unknown>()
    const payload: AnyPayload = delivery.notification.payload
    expectTypeOf(payload.score).toEqualTypeOf<unknown>()
  })

  test('a misspelt field of a payload with a schema does not compile', () => {
    const { notification } = delivery
    if (notification.type !== 'lowEnergyAgentOpened') return
    // @ts-expect-error It is called username.
    expectTypeOf(notification.payload.usernme).toEqualTypeOf<string>()
    const score = {} as Notification<
      'cxScoreUpdated',
      { cxScoreUpdated: z.ZodObject<{ score: z.ZodNumber }> }
    >
    // @ts-expect-error It is called score.
    expectTypeOf(score.payload.scroe).toEqualTypeOf<number>()
    // @ts-expect-error It is called callId.
    expectTypeOf(lowEnergyAgentOpenedPayloadSchema.parse({}).callid).toEqualTypeOf<string>()
    // @ts-expect-error It is called idx.
    const { index } = {} as LowEnergyAgentOpenedPayload
    expectTypeOf(index).toEqualTypeOf<number>()
  })
})

describe('results', () => {
  test('safeParseDelivery narrows on success', () => {
    const result = safeParseDelivery('')
    if (result.success) {
      expectTypeOf(result.data).toEqualTypeOf<Delivery>()
      expectTypeOf(result.error).toEqualTypeOf<undefined>()
    } else {
      expectTypeOf(result.error).toEqualTypeOf<InvalidDeliveryError>()
    }
  })

  test('the schemas have the types of the parser', () => {
    expectTypeOf<z.output<typeof deliverySchema>>().toExtend<Delivery>()
    expectTypeOf<z.output<typeof notificationSchema>['type']>().toEqualTypeOf<string>()
    expectTypeOf<z.input<typeof deliverySchema>['subscriptionId']>().toEqualTypeOf<number | string>()
    expectTypeOf<
      z.output<typeof lowEnergyAgentOpenedPayloadSchema>
    >().toEqualTypeOf<LowEnergyAgentOpenedPayload>()
    const { notification } = deliverySchema.parse({})
    if (notification.type === 'lowEnergyAgentOpened')
      expectTypeOf(notification.payload.idx).toEqualTypeOf<number>()
  })

  test('the schemas are object schemas, to be extended', () => {
    const queued = deliverySchema.extend({ queuedAt: z.number() })
    expectTypeOf<z.output<typeof queued>>().toExtend<Delivery & { queuedAt: number }>()
    const forTenant = notificationSchema.extend({ tenant: z.string() })
    expectTypeOf<z.output<typeof forTenant>['tenant']>().toEqualTypeOf<string>()
    expectTypeOf<z.output<typeof deliverySchema>['notification']>().toEqualTypeOf<Delivery['notification']>()
  })
})

describe('createDeliveryParser', () => {
  const payloads = {
    cxScoreUpdated: z.object({ score: z.coerce.number(), trend: z.string().default('flat') }),
    somethingNew: mini.object({ on: mini.boolean() }),
  }
  const parser = createDeliveryParser({ payloads })

  test('gives each type the output of its schema', () => {
    const { notification } = parser.parse('')
    switch (notification.type) {
      case 'cxScoreUpdated':
        expectTypeOf(notification.payload).toEqualTypeOf<{ score: number; trend: string }>()
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
  })

  test('only schemas are payloads', () => {
    // @ts-expect-error A function is not a zod schema.
    expectTypeOf(createDeliveryParser).toBeCallableWith({ payloads: { cxScoreUpdated: () => true } })
  })
})

test('verifySecrets takes the headers of the web, of Node.js and of Lambda', () => {
  const lambda: Record<string, string | undefined> = {}
  const node: IncomingHttpHeaders = {}
  for (const headers of [new Headers(), lambda, node]) {
    expectTypeOf(verifySecrets(headers, { token: ['a', 'b'] })).toEqualTypeOf<boolean>()
  }
})
