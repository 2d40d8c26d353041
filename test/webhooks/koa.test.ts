import { bodyParser } from '@koa/bodyparser'
import Koa from 'koa'
import { DeliveryReceiver, toKoaMiddleware } from 'notification-subscriber/webhooks'
import { expect, test } from 'vitest'
import { lowEnergyDelivery } from './deliveries.js'
import { recordingLogger, secrets, serverOf } from './support.js'

const delivery = JSON.stringify(lowEnergyDelivery())

test('toKoaMiddleware takes what a body parser has left, and middleware before it sees the answer', async () => {
  const { logger, lines } = recordingLogger()
  const received: unknown[] = []
  const receiver = new DeliveryReceiver({ secrets, logger }).onAny((_, context) =>
    received.push(context.delivery),
  )
  const statuses: number[] = []
  const app = new Koa()
    .use(async (context, next) => {
      await next()
      statuses.push(context.status)
    })
    .use(bodyParser())
    .use(toKoaMiddleware(receiver))
  await using server = await serverOf(app.callback())
  expect((await server.post(delivery)).status).toBe(204)
  // This parser leaves an empty object, and the stream unread.
  expect(
    (await server.post(delivery, { token: 'the-current-secret', 'content-type': 'text/csv' })).status,
  ).toBe(204)
  expect(received).toEqual([lowEnergyDelivery(), lowEnergyDelivery()])
  expect(statuses).toEqual([204, 204])
  const warnings = lines.filter(({ level }) => level === 'warn')
  expect(warnings).toMatchObject([{ fields: { event: 'callback.parsed-before' } }])
})

test('toKoaMiddleware takes rawBody, where nothing else is left', async () => {
  const received: unknown[] = []
  const receiver = new DeliveryReceiver({ secrets }).onAny((_, context) => received.push(context.delivery))
  const app = new Koa()
    .use(async (context, next) => {
      const chunks: Buffer[] = []
      for await (const chunk of context.req) chunks.push(chunk)
      Object.assign(context.request, { rawBody: Buffer.concat(chunks) })
      return next()
    })
    .use(toKoaMiddleware(receiver))
  await using server = await serverOf(app.callback())
  expect((await server.post(delivery)).status).toBe(204)
  expect(received).toEqual([lowEnergyDelivery()])
})
