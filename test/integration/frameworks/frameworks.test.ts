/**
 * One smoke test of each way into a framework: the blocks of docs/receiver.md, and others, body parsers in front included. What
 * all ways share is tested in test/webhooks.
 */
import type { RequestListener } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer } from 'node:https'
import awsLambdaFastify from '@fastify/aws-lambda'
import { createAdaptorServer, getRequestListener } from '@hono/node-server'
import type { RawBodyRequest } from '@nestjs/common'
import connect, { type NextHandleFunction } from 'connect'
import { Elysia } from 'elysia'
import express, { type Response as ExpressResponse, type Request } from 'express'
import express4 from 'express4'
import Fastify, { type FastifyInstance } from 'fastify'
import { H3, toNodeHandler as listenerOfH3 } from 'h3'
import { createApp, defineEventHandler, toNodeListener, toWebRequest } from 'h31'
import { Hono } from 'hono'
import { validator } from 'hono/validator'
import {
  type DeliveryReceiver,
  toFastifyPlugin,
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'
import serverlessHttp from 'serverless-http'
import { expect, test } from 'vitest'
import { expectTypedDelivery, type StartServer } from './support/expect-delivery.js'
import { functionUrl, type LambdaHandler } from './support/function-url.js'
import { type Nest, nestApp, nestVersions } from './support/nest.js'
import { pageServers } from './support/page-servers.js'
import { startServer } from './support/running-server.js'

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
    return startServer(createServer(tls, app))
  },
])

const rows: readonly [name: string, start: StartServer][] = [
  ...Object.entries(pageServers).map(([name, start]): [string, StartServer] => [
    `the block for ${name}`,
    start,
  ]),
  ['node:https', (receiver, tls) => startServer(createServer(tls, toNodeHandler(receiver)))],
  [
    'node:http2 that allows HTTP/1',
    (receiver, tls) => startServer(createSecureServer({ ...tls, allowHTTP1: true }, toNodeHandler(receiver))),
  ],
  ...expressRows,
  [
    'Connect behind a body parser',
    (receiver, tls) =>
      startServer(
        createServer(tls, connect().use(express.json()).use('/notifications', toNodeHandler(receiver))),
      ),
  ],
  [
    'Fastify with its JSON parser and receiver.handle',
    fastify((app, receiver) => {
      app.post('/notifications', async ({ method, headers, body }, reply) => {
        const answer = await receiver.handle({ method, headers, body })
        return reply.code(answer.status).headers(answer.headers).send()
      })
    }),
  ],
  [
    // Hono keeps the body, but the `Request` itself cannot be read again.
    'Hono with receiver.handle behind the JSON validator',
    hono((app, receiver) => {
      app.use(validator('json', (value) => value)).post('/notifications', async ({ req }) => {
        const { method, raw } = req
        const answer = await receiver.handle({ method, headers: raw.headers, body: await req.text() })
        return new Response(null, answer)
      })
    }),
  ],
  [
    'h3 1, as in Nuxt, with toWebHandler',
    (receiver, tls) => {
      const handleCallback = toWebHandler(receiver)
      const route = defineEventHandler((event) => handleCallback(toWebRequest(event)))
      return startServer(createServer(tls, toNodeListener(createApp().use('/notifications', route))))
    },
  ],
  [
    'h3 2 with toWebHandler',
    (receiver, tls) => {
      const handleCallback = toWebHandler(receiver)
      const app = new H3().post('/notifications', ({ req }) => handleCallback(req))
      return startServer(createServer(tls, listenerOfH3(app)))
    },
  ],
  [
    'Elysia without its parser',
    (receiver, tls) => {
      const handleCallback = toWebHandler(receiver)
      const app = new Elysia()
      app.post('/notifications', ({ request }) => handleCallback(request), { parse: 'none' })
      return startServer(createServer(tls, getRequestListener(app.handle)))
    },
  ],
  [
    'Express behind serverless-http',
    (receiver, tls) => {
      const app = express().post('/notifications', toNodeHandler(receiver))
      return startServer(createServer(tls, functionUrl(serverlessHttp(app) as unknown as LambdaHandler)))
    },
  ],
  [
    'Fastify behind @fastify/aws-lambda',
    async (receiver, tls) => {
      const app = Fastify()
      await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
      const handler = awsLambdaFastify(app) as unknown as LambdaHandler
      return startServer(
        createServer(
          tls,
          functionUrl((event) => handler(event)),
        ),
      )
    },
  ],
  ...Object.entries(nestVersions).map(([version, nest]): [string, StartServer] => [
    `a controller of NestJS ${version} that takes the raw body`,
    controller(nest, (receiver) => async ({ method, headers, rawBody }, response) => {
      const answer = await receiver.handle({ method, headers, body: rawBody })
      response.status(answer.status).set(answer.headers).end()
    }),
  ]),
]

test.each(rows)('%s hands a typed notification to the handler, and refuses a stranger', (_name, start) =>
  expectTypedDelivery(start),
)

test('the two versions of NestJS are two', () => {
  expect(nestVersions[12].NestFactory).not.toBe(nestVersions[11].NestFactory)
})

function fastify(addRoute: (app: FastifyInstance, receiver: DeliveryReceiver) => void): StartServer {
  return async (receiver, tls) => {
    const app = Fastify({ https: tls }) as unknown as FastifyInstance
    addRoute(app, receiver)
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })
    return { origin, close: () => app.close() }
  }
}

function hono(addRoute: (app: Hono, receiver: DeliveryReceiver) => void): StartServer {
  return (receiver, tls) => {
    const app = new Hono()
    addRoute(app, receiver)
    return startServer(createAdaptorServer({ fetch: app.fetch, createServer, serverOptions: tls }))
  }
}

type Receive = (request: RawBodyRequest<Request>, response: ExpressResponse) => Promise<void>

/** Decorators are called as the functions they are: nothing that runs the tests has to compile them. */
function controller(nest: Nest, makeReceive: (receiver: DeliveryReceiver) => Receive): StartServer {
  return async (receiver, tls) => {
    const receive = makeReceive(receiver)
    class NotificationsController {
      receive(request: RawBodyRequest<Request>, response: ExpressResponse) {
        return receive(request, response)
      }
    }
    const { prototype } = NotificationsController
    nest.Post()(prototype, 'receive', Object.getOwnPropertyDescriptor(prototype, 'receive') ?? {})
    nest.Req()(prototype, 'receive', 0)
    nest.Res()(prototype, 'receive', 1)
    nest.Controller('notifications')(NotificationsController)
    return nestApp(nest, tls, { controllers: [NotificationsController] })
  }
}
