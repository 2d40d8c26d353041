import {
  type CallbackAnswer,
  type Delivery,
  type DeliveryContext,
  DeliveryReceiver,
  type DeliveryReceiverOptions,
  type DocumentedNotificationType,
  type InvalidDeliveryError,
  type LowEnergyAgentOpenedPayload,
  type Notification,
  type NotificationHandler,
  sampleDelivery,
  toWebHandler,
} from 'notification-subscriber/webhooks'
import { describe, expectTypeOf, test } from 'vitest'
import * as z from 'zod'

const secrets = { token: 'a' }
const payloads = {
  cxScoreUpdated: z.object({ score: z.coerce.number() }),
  mine: z.object({ on: z.boolean() }),
}
const receiver = new DeliveryReceiver({ secrets })

describe('a handler', () => {
  test('of an unknown type does not compile, unless `.on<string>` takes any text', () => {
    // @ts-expect-error It is misspelt.
    receiver.on('lowEnergyAgentOpend', () => {})
    // @ts-expect-error It is subscribed to, and not delivered: the error names what is.
    receiver.on('call-score', () => {})
    receiver.on<string>('somethingNew', (notification) => {
      expectTypeOf(notification).toEqualTypeOf<Delivery['notification']>()
    })
  })

  test('of a type that a function of yours takes as a type parameter', () => {
    function register<Type extends DocumentedNotificationType>(
      type: Type,
      handler: NotificationHandler<Type>,
    ) {
      return receiver.on(type, handler)
    }
    expectTypeOf(register('cxScoreUpdated', () => {})).toEqualTypeOf<DeliveryReceiver>()
  })

  test('gets the payload of its type: the output of its schema, or the documented one', () => {
    new DeliveryReceiver({ secrets, payloads })
      .on('cxScoreUpdated', ({ payload }) => expectTypeOf(payload).toEqualTypeOf<{ score: number }>())
      .on('mine', ({ payload }) => expectTypeOf(payload).toEqualTypeOf<{ on: boolean }>())
      .on('lowEnergyAgentOpened', ({ payload }) => {
        expectTypeOf(payload).toEqualTypeOf<LowEnergyAgentOpenedPayload>()
      })
      .on('topicKeywordEvent', ({ payload }) => {
        expectTypeOf(payload).toEqualTypeOf<Record<string, unknown>>()
      })
      .onAny((notification) => {
        expectTypeOf(notification).toEqualTypeOf<Notification<string, typeof payloads>>()
        if (notification.type === 'mine') expectTypeOf(notification.payload.on).toEqualTypeOf<boolean>()
      })
  })

  test('is a function, asynchronous or not; one for a Notification takes every notification', () => {
    const audit = async (notification: Notification) => notification.payload.anything
    new DeliveryReceiver({ secrets, payloads }).onAny((notification) => audit(notification)).onAny(audit)
    receiver.onAny(audit)
    // @ts-expect-error A handler is a function.
    expectTypeOf(receiver.on<string>('a', 'log')).toBeObject()
    // @ts-expect-error The callId of a lowEnergyAgentOpened is a string.
    expectTypeOf(receiver.on('lowEnergyAgentOpened', ({ payload }) => payload.callId * 2)).toBeObject()
  })

  test('of a type with a schema takes a sample, with payloads and without', () => {
    const onScore: NotificationHandler<'cxScoreUpdated', Pick<typeof payloads, 'cxScoreUpdated'>> = () => {}
    const onMine: NotificationHandler<'mine', typeof payloads> = ({ payload }) => payload.on
    const score = sampleDelivery('cxScoreUpdated', { payload: { score: 4.25 } })
    onScore(score.delivery.notification, score.context)
    const mine = sampleDelivery('mine', { payloads, payload: { on: true } })
    onMine(mine.delivery.notification, mine.context)
    const { payload } = sampleDelivery('cxScoreUpdated', { payloads }).delivery.notification
    expectTypeOf(payload).toEqualTypeOf<{ score: number }>()
    // @ts-expect-error A type that is neither documented nor in payloads.
    sampleDelivery('mine')
    // @ts-expect-error A field that is not documented.
    sampleDelivery('lowEnergyAgentOpened', { payload: { user: 'bob' } })
  })
})

describe('the options of a receiver', () => {
  test('demand secrets or allowUnauthenticated: true', () => {
    const options = (...values: DeliveryReceiverOptions[]) => values
    // @ts-expect-error Neither.
    options({})
    // @ts-expect-error No decision.
    options({ allowUnauthenticated: false })
    // @ts-expect-error Both.
    options({ secrets, allowUnauthenticated: true })
    // @ts-expect-error The environment may have no such variable.
    options({ secrets: { token: process.env.TOKEN } })
    // @ts-expect-error No such option.
    options({ secrets, ackTimeout: 5 })
    options({ secrets: ({ header }) => (header('x-tenant') ? { token: ['a', 'b'] } : undefined) })
    // @ts-expect-error A callback does not wait for a vault.
    options({ secrets: async () => ({ token: 'a' }) })
    // @ts-expect-error Nor for a value.
    options({ secrets: () => ({ token: Promise.resolve('a') }) })
    // @ts-expect-error The environment may have no such variable.
    options({ secrets: () => ({ token: process.env.TOKEN }) })
  })

  test('type their callbacks', () => {
    new DeliveryReceiver({
      secrets,
      payloads,
      onInvalid: (error) => expectTypeOf(error).toEqualTypeOf<InvalidDeliveryError>(),
      onError: (error, notification, context) => {
        expectTypeOf(error).toEqualTypeOf<unknown>()
        expectTypeOf(notification).toEqualTypeOf<Notification<string, typeof payloads>>()
        expectTypeOf(context).toEqualTypeOf<DeliveryContext<typeof payloads>>()
      },
    })
  })
})

test('handle takes no request without headers, which carry the secret', () => {
  const answer = receiver.handle({ method: 'POST', headers: {}, body: {} })
  expectTypeOf(answer).resolves.toEqualTypeOf<CallbackAnswer>()
  // @ts-expect-error The headers are missing.
  expectTypeOf(receiver.handle({ method: 'POST', body: '' })).toBeObject()
})

test('a web handler takes what its waitUntil takes', () => {
  type Handler<Args extends unknown[] = []> = (request: Request, ...args: Args) => Promise<Response>
  expectTypeOf(toWebHandler(receiver)).toEqualTypeOf<Handler>()
  const vercel = (_promise: Promise<unknown>) => {}
  expectTypeOf(toWebHandler(receiver, { waitUntil: vercel })).toEqualTypeOf<Handler>()
  interface Context {
    waitUntil(promise: Promise<unknown>): void
  }
  const worker = toWebHandler(receiver, {
    waitUntil: (promise, _env: object, context: Context) => context.waitUntil(promise),
  })
  expectTypeOf(worker).toExtend<Handler<[env: object, context: Context]>>()
})
