import { createServer } from 'node:https'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { validator } from 'hono/validator'
import { type DeliveryReceiver, toWebHandler } from 'notification-subscriber/webhooks'
import { describe, test } from 'vitest'
import { expectTypedDelivery } from './support/expect-delivery.js'
import { startServer } from './support/running-server.js'

type MakeHandler = (receiver: DeliveryReceiver) => (context: Context) => Promise<Response>

const webHandler: MakeHandler = (receiver) => {
  const handleCallback = toWebHandler(receiver)
  return (context) => handleCallback(context.req.raw)
}

/** For what read the body before: Hono keeps it, but the `Request` itself cannot be read again. */
const handle: MakeHandler = (receiver) => async (context) => {
  const { method, raw } = context.req
  const { status, headers } = await receiver.handle({
    method,
    headers: raw.headers,
    body: await context.req.text(),
  })
  return new Response(null, { status, headers })
}

const routes: [name: string, middleware: MiddlewareHandler[], makeHandler: MakeHandler][] = [
  ['toWebHandler and nothing before it', [], webHandler],
  ['toWebHandler behind a body limit', [bodyLimit({ maxSize: 2 ** 20 })], webHandler],
  ['receiver.handle and nothing before it', [], handle],
  ['receiver.handle behind the JSON validator', [validator('json', (value) => value)], handle],
]

describe('Hono', () => {
  test.each(routes)(
    'with %s, a route hands a typed notification to the handler',
    (_name, middleware, makeHandler) =>
      expectTypedDelivery((receiver, tls) => {
        const app = new Hono()
        for (const before of middleware) app.use(before)
        app.post('/notifications', makeHandler(receiver))
        return startServer(createAdaptorServer({ fetch: app.fetch, createServer, serverOptions: tls }))
      }),
  )
})
