import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
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
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'
import { describe, expectTypeOf, test } from 'vitest'
import * as z from 'zod'

type AnyPayload = Record<string, unknown>

const secrets = { token: 'a' }
const payloads = {
  cxScoreUpdated: z.object({ score: z.coerce.number() }),
  mine: z.object({ on: z.boolean() }),
}

describe('on gives each type its payload', () => {
  const receiver = new DeliveryReceiver({ secrets })

  test('the documented one', () => {
    receiver.on('lowEnergyAgentOpened', (notification, context) => {
      expectTypeOf(notification).toEqualTypeOf<Notification<'lowEnergyAgentOpened'>>()
      expectTypeOf(context.subscriptionId).toEqualTypeOf<number>()
      expectTypeOf(context.delivery).toEqualTypeOf<Delivery>()
    })
  })

  test('an unknown type does not compile, unless `.on<string>` takes any text', () => {
    // @ts-expect-error It is misspelt.
    receiver.on('lowEnergyAgentOpend', () => {})
    // @ts-expect-error It is subscribed to, and not delivered: the error names what is.
    receiver.on('call-score', () => {})
    receiver.on<string>('somethingNew', (notification) => {
      expectTypeOf(notification).toEqualTypeOf<Delivery['notification']>()
    })
  })

  test('a type that a function of yours takes as a type parameter', () => {
    function register<Type extends DocumentedNotificationType>(
      type: Type,
      handler: NotificationHandler<Type>,
    ) {
      return receiver.on(type, handler)
    }
    expectTypeOf(register('cxScoreUpdated', () => {})).toEqualTypeOf<DeliveryReceiver>()
  })

  test('the union for all types', () => {
    receiver.onAny((notification, context) => {
      expectTypeOf(notification).toEqualTypeOf<Delivery['notification']>()
      expectTypeOf(context.delivery).toEqualTypeOf<Delivery>()
    })
  })

  test('the output of the schemas in payloads', () => {
    new DeliveryReceiver({ secrets, payloads })
      .on('cxScoreUpdated', ({ payload }) => {
        expectTypeOf(payload).toEqualTypeOf<{ score: number }>()
      })
      .on('mine', ({ payload }) => {
        expectTypeOf(payload).toEqualTypeOf<{ on: boolean }>()
      })
      .on('lowEnergyAgentOpened', ({ payload }) => {
        expectTypeOf(payload).toEqualTypeOf<LowEnergyAgentOpenedPayload>()
      })
      .on('topicKeywordEvent', ({ payload }) => {
        expectTypeOf(payload).toEqualTypeOf<AnyPayload>()
      })
      .onAny((notification) => {
        expectTypeOf(notification).toEqualTypeOf<Notification<string, typeof payloads>>()
        if (notification.type === 'mine') expectTypeOf(notification.payload.on).toEqualTypeOf<boolean>()
      })
  })

  test('a handler may be asynchronous and return anything, and calls chain', () => {
    expectTypeOf(receiver.on<string>('a', async () => 5).onAny(() => null)).toEqualTypeOf<DeliveryReceiver>()
    // @ts-expect-error A handler is a function.
    expectTypeOf(receiver.on<string>('a', 'log')).toBeObject()
    // @ts-expect-error The callId of a lowEnergyAgentOpened is a string.
    expectTypeOf(receiver.on('lowEnergyAgentOpened', ({ payload }) => payload.callId * 2)).toBeObject()
  })
})

describe('options', () => {
  test('demand secrets or allowUnauthenticated: true', () => {
    const options = (...values: DeliveryReceiverOptions[]) => values
    options({ secrets: { token: ['a', 'b'] as const } }, { allowUnauthenticated: true })
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
      logger: console,
      onInvalid: (error) => {
        expectTypeOf(error).toEqualTypeOf<InvalidDeliveryError>()
      },
      onError: (error, notification, context) => {
        expectTypeOf(error).toEqualTypeOf<unknown>()
        expectTypeOf(notification).toEqualTypeOf<Notification<string, typeof payloads>>()
        expectTypeOf(context).toEqualTypeOf<DeliveryContext<typeof payloads>>()
      },
    })
  })
})

test('handle takes no request without headers, which carry the secret', () => {
  const receiver = new DeliveryReceiver({ secrets })
  expectTypeOf(
    receiver.handle({ method: 'POST', headers: {}, body: {} }),
  ).resolves.toEqualTypeOf<CallbackAnswer>()
  // @ts-expect-error The headers are missing.
  expectTypeOf(receiver.handle({ method: 'POST', body: '' })).toBeObject()
})

describe('the adapters fit their frameworks', () => {
  const receiver = new DeliveryReceiver({ secrets, payloads })

  test('servers of Node.js', () => {
    const handler = toNodeHandler(receiver)
    expectTypeOf(createServer).toBeCallableWith(handler)
    expectTypeOf(createHttpsServer).toBeCallableWith({}, handler)
    expectTypeOf(createHttp2Server).toBeCallableWith(handler)
    // The shape of a middleware of Express, Connect and NestJS.
    type Middleware = (...args: [...Parameters<RequestListener>, next: (error?: unknown) => void]) => void
    expectTypeOf(handler).toExtend<Middleware>()
  })

  test('servers of the web', () => {
    expectTypeOf(toWebHandler(receiver)).toEqualTypeOf<(request: Request) => Promise<Response>>()
    const vercel = (_promise: Promise<unknown>) => {}
    expectTypeOf(toWebHandler(receiver, { waitUntil: vercel })).toEqualTypeOf<
      (request: Request) => Promise<Response>
    >()
    interface Context {
      waitUntil(promise: Promise<unknown>): void
    }
    const worker = toWebHandler(receiver, {
      waitUntil: (promise, _env: object, context: Context) => context.waitUntil(promise),
    })
    expectTypeOf(worker).toExtend<(request: Request, env: object, context: Context) => Promise<Response>>()
  })
})
