/**
 * One smoke test of each way into a framework: the blocks of docs/receiver.md, and others, body parsers in front included. What
 * all ways share is tested in test/webhooks.
 */
import type { RequestListener } from 'node:http'
import awsLambdaFastify from '@fastify/aws-lambda'
import { getRequestListener } from '@hono/node-server'
import connect, { type NextHandleFunction } from 'connect'
import { Elysia } from 'elysia'
import express from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { H3, toNodeHandler as listenerOfH3 } from 'h3'
import {
  DeliveryReceiver,
  type InvalidDeliveryError,
  toFastifyPlugin,
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'
import serverlessHttp from 'serverless-http'
import { Agent, request } from 'undici'
import { expect, test } from 'vitest'
import { functionUrl, type LambdaHandler } from './support/function-url.js'
import { nestVersions } from './support/nest.js'
import { pageServers } from './support/page-servers.js'
import { callbackToken, lowEnergy, type StartServer, secure, subscribe } from './support/subscribed.js'

/** What the versions of Express have in common. */
type ExpressLike = RequestListener & {
  use(parser: NextHandleFunction): unknown
  post(path: string, handler: RequestListener): unknown
}

/** Express 4 and 5 behind the body parsers of the whole app; Connect has the same ones. */
const expressRows = [express, express4].map((framework, index): [string, StartServer] => [
  `Express ${5 - index} behind body parsers`,
  (receiver, tls) => {
    const app: ExpressLike = framework()
    const { json, raw, text, urlencoded } = framework
    for (const parser of [json(), raw(), text(), urlencoded({ extended: true })]) app.use(parser)
    app.post('/notifications', toNodeHandler(receiver))
    return secure(tls, app)
  },
])

const rows: readonly [name: string, start: StartServer][] = [
  ...Object.entries(pageServers).map(([name, start]): [string, StartServer] => [
    `the block for ${name}`,
    start,
  ]),
  ...expressRows,
  [
    'Connect behind a body parser',
    (receiver, tls) =>
      secure(tls, connect().use(express.json()).use('/notifications', toNodeHandler(receiver))),
  ],
  [
    'Fastify with its JSON parser and receiver.handle',
    async (receiver, tls) => {
      const app = Fastify({ https: tls })
      app.post('/notifications', async ({ method, headers, body }, reply) => {
        const answer = await receiver.handle({ method, headers, body })
        return reply.code(answer.status).headers(answer.headers).send()
      })
      const origin = await app.listen({ host: '127.0.0.1', port: 0 })
      return { origin, [Symbol.asyncDispose]: () => app.close() }
    },
  ],
  [
    'h3 2 with toWebHandler',
    (receiver, tls) => {
      const handleCallback = toWebHandler(receiver)
      const app = new H3().post('/notifications', ({ req }) => handleCallback(req))
      return secure(tls, listenerOfH3(app))
    },
  ],
  [
    'Elysia without its parser',
    (receiver, tls) => {
      const handleCallback = toWebHandler(receiver)
      const app = new Elysia()
      app.post('/notifications', ({ request }) => handleCallback(request), { parse: 'none' })
      return secure(tls, getRequestListener(app.handle))
    },
  ],
  [
    'Express behind serverless-http',
    (receiver, tls) => {
      const app = express().post('/notifications', toNodeHandler(receiver))
      return secure(tls, functionUrl(serverlessHttp(app) as unknown as LambdaHandler))
    },
  ],
  [
    'Fastify behind @fastify/aws-lambda',
    async (receiver, tls) => {
      const app = Fastify()
      await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
      const handler = awsLambdaFastify(app) as unknown as LambdaHandler
      return secure(
        tls,
        functionUrl((event) => handler(event)),
      )
    },
  ],
]

test.each(rows)('%s hands a typed notification to the handler, and refuses a stranger', async (_, start) => {
  const handled: { subscriptionId: number; callId: string; notification: object }[] = []
  const problems: unknown[] = []
  const receiver = new DeliveryReceiver({
    secrets: { token: callbackToken },
    onInvalid: (error: InvalidDeliveryError) => problems.push(error),
    onError: (error) => problems.push(error),
    // The stranger at the end is no news here.
    onRefused: () => {},
  }).on('lowEnergyAgentOpened', async (notification, { subscriptionId }) => {
    handled.push({ subscriptionId, callId: notification.payload.callId, notification })
  })
  await using subscribed = await subscribe((tls) => start(receiver, tls))

  const [callback] = await subscribed.emulator.notify(lowEnergy)

  expect(problems).toEqual([])
  expect(callback).toMatchObject({ status: 204, subscriptionEnded: false })
  const { category: _category, username: _username, ...notification } = lowEnergy
  const { subscriptionId } = subscribed
  expect(handled).toEqual([{ subscriptionId, callId: lowEnergy.payload.callId, notification }])

  await subscribed.sendToken('of-someone-else')
  const [refused] = await subscribed.emulator.notify(lowEnergy)
  expect(refused).toMatchObject({ status: 401 })
  expect(handled).toHaveLength(1)
})

test('the two versions of NestJS are two', () => {
  expect(nestVersions[12].NestFactory).not.toBe(nestVersions[11].NestFactory)
})

/**
 * Bodies that the parser of a framework would answer by itself, with 400, 413 or 415, each of which counts as a failed
 * delivery: the recipes put the route before the parser.
 */
const { express: express5, fastify, nest11, nest12, koa, hapi } = pageServers
const recipes = { express5, express4: pageServers.express4, fastify, nest11, nest12, koa, hapi }

test.each(Object.entries(recipes))(
  'the block for %s leaves bodies and limit to the receiver',
  async (_, start) => {
    const seen: string[] = []
    let sent = ''
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      onInvalid: ({ bodyText }) => seen.push(bodyText === sent ? 'invalid' : 'another body'),
      onRefused: ({ status }) => seen.push(`refused with ${status}`),
    }).onAny(() => seen.push('handled'))
    await using subscribed = await subscribe((tls) => start(receiver, tls))
    const dispatcher = new Agent({ connect: { ca: subscribed.emulator.ca } })
    const delivery = JSON.stringify({ subscriptionId: 1, notification: lowEnergy })
    const json = { 'content-type': 'application/json' }
    const unknownCharset = { 'content-type': 'application/json; charset=utf-99' }
    for (const [body, type, status, expected] of [
      [delivery.padEnd(900_000), json, 204, 'handled'],
      [delivery.slice(1), json, 204, 'invalid'],
      ['', json, 204, 'invalid'],
      [delivery, unknownCharset, 204, 'handled'],
      [delivery, {}, 204, 'handled'],
      [delivery.padEnd(2 ** 20 + 1), json, 413, 'refused with 413'],
    ] as const) {
      sent = body
      const headers = { ...type, token: callbackToken, connection: 'close' }
      const options = { method: 'POST', headers, body, dispatcher } as const
      expect((await request(`${subscribed.origin}/notifications`, options)).statusCode).toBe(status)
      expect(seen.splice(0)).toEqual([expected])
    }
    await dispatcher.destroy()
  },
)
