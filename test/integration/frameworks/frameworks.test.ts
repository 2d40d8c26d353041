/** Every framework hands a typed notification to the handler, whatever body parser stands before the route. */
import 'reflect-metadata'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { connect as connectHttp2, createSecureServer } from 'node:http2'
import { createServer } from 'node:https'
import { createAdaptorServer } from '@hono/node-server'
import {
  Controller,
  type MiddlewareConsumer,
  Module,
  type NestApplicationOptions,
  Post,
  type RawBodyRequest,
  Req,
  RequestMethod,
  Res,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import connect, { type NextHandleFunction } from 'connect'
import express, { type Response as ExpressResponse, type Request } from 'express'
import express4 from 'express4'
import Fastify, { type FastifyInstance, type FastifyPluginCallback } from 'fastify'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { validator } from 'hono/validator'
import { type KeyAndCertificate, startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver, toNodeHandler, toWebHandler } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { expectTypedDelivery, type StartServer } from './support/expect-delivery.js'
import { lowEnergy } from './support/notifications.js'
import { startServer } from './support/running-server.js'
import { callbackToken } from './support/subscribed.js'

const servers: [name: string, StartServer][] = [
  ['node:https', (receiver, tls) => startServer(createServer(tls, toNodeHandler(receiver)))],
  ['node:http', (receiver) => startServer(createHttpServer(toNodeHandler(receiver)), 'http')],
  ['node:http2 that allows HTTP/1', (receiver, tls) => startServer(http2Server(receiver, tls))],
]

describe('the servers of Node.js', () => {
  test.each(servers)('%s hands a typed notification to the handler', (_name, start) =>
    expectTypedDelivery(start),
  )

  test('node:http2 answers over HTTP/2', async () => {
    const types: string[] = []
    const receiver = new DeliveryReceiver({ secrets: { token: callbackToken }, logger: false }).onAny(
      ({ type }) => types.push(type),
    )
    await using emulator = await startEmulator()
    const server = await startServer(http2Server(receiver, emulator.tls))
    const session = connectHttp2(server.origin, { ca: emulator.ca })
    const { category: _category, ...notification } = lowEnergy
    const body = JSON.stringify({ subscriptionId: 1, notification })
    expect(await post(session, body, { token: callbackToken })).toMatchObject({ ':status': 204 })
    expect(await post(session, body, { token: 'of-someone-else' })).toMatchObject({ ':status': 401 })
    expect(types).toEqual(['lowEnergyAgentOpened'])
    session.close()
    await server.close()
  })
})

function http2Server(receiver: DeliveryReceiver, tls: KeyAndCertificate) {
  return createSecureServer({ ...tls, allowHTTP1: true }, toNodeHandler(receiver))
}

/** Sends one callback, and resolves with its answer: the emulator speaks HTTP/1 only. */
async function post(session: ReturnType<typeof connectHttp2>, body: string, headers: Record<string, string>) {
  const stream = session.request({ ':method': 'POST', ':path': '/notifications', ...headers })
  stream.end(body)
  const [answer] = await once(stream, 'response')
  stream.resume()
  await once(stream, 'close')
  return answer
}

type BodyParsers = Record<'json' | 'raw' | 'text' | 'urlencoded', (options?: object) => NextHandleFunction>

/** What is mounted for the whole app, before the route. */
function middlewareOf({ json, raw, text, urlencoded }: BodyParsers): [string, NextHandleFunction[]][] {
  const type = 'application/json'
  const extended = true
  return [
    ['no body parser', []],
    ['json', [json()]],
    ['raw, for JSON', [raw({ type })]],
    ['text, for JSON', [text({ type })]],
    ['raw, text and urlencoded, which leave JSON alone', [raw(), text(), urlencoded({ extended })]],
    ['every body parser', [json(), raw(), text(), urlencoded({ extended })]],
    ['every body parser, raw first', [raw({ type }), json(), text(), urlencoded({ extended })]],
  ]
}

describe('a route of Express 5 hands a typed notification to the handler', () => {
  test.each(middlewareOf(express))('with %s', (_name, middleware) =>
    expectTypedDelivery((receiver, tls) => {
      const app = express()
      for (const parser of middleware) app.use(parser)
      app.post('/notifications', toNodeHandler(receiver))
      return startServer(createServer(tls, app))
    }),
  )

  test('in a router, with a body parser of its own', () =>
    expectTypedDelivery((receiver, tls) => {
      const router = express.Router()
      router.post('/', express.json(), toNodeHandler(receiver))
      return startServer(createServer(tls, express().use('/notifications', router)))
    }))
})

describe('a route of Express 4 hands a typed notification to the handler', () => {
  test.each(middlewareOf(express4))('with %s', (_name, middleware) =>
    expectTypedDelivery((receiver, tls) => {
      const app = express4()
      for (const parser of middleware) app.use(parser)
      app.post('/notifications', toNodeHandler(receiver))
      return startServer(createServer(tls, app))
    }),
  )
})

// Connect has the body parsers of Express.
test('a path of Connect hands a typed notification to the handler, behind a body parser', () =>
  expectTypedDelivery((receiver, tls) => {
    const app = connect().use(express.json()).use('/notifications', toNodeHandler(receiver))
    return startServer(createServer(tls, app))
  }))

const json = 'application/json'

const fastifyParsers: [name: string, addTo: (app: FastifyInstance) => void][] = [
  ['the JSON parser that is there by default', () => {}],
  [
    'a parser that leaves bytes',
    (app) =>
      app.addContentTypeParser(json, { parseAs: 'buffer' }, (_request, body, done) => done(null, body)),
  ],
  [
    'a parser that leaves text',
    (app) =>
      app.addContentTypeParser(json, { parseAs: 'string' }, (_request, body, done) => done(null, body)),
  ],
]

describe('Fastify 5', () => {
  test.each(fastifyParsers)(
    'with %s, a route hands a typed notification to the handler',
    (_name, addParser) =>
      expectTypedDelivery(
        startFastify((app, receiver) => {
          addParser(app)
          app.post('/notifications', async ({ method, headers, body }, reply) => {
            const answer = await receiver.handle({ method, headers, body })
            return reply.code(answer.status).headers(answer.headers).send()
          })
        }),
      ),
  )

  test('with no body parser, toNodeHandler takes over request and response', () =>
    expectTypedDelivery(
      startFastify((app, receiver) => {
        const handleCallback = toNodeHandler(receiver)
        app.addContentTypeParser(json, (_request, _payload, done) => done(null))
        app.post('/notifications', (request, reply) => {
          reply.hijack()
          handleCallback(request.raw, reply.raw)
        })
      }),
    ))
})

function startFastify(addRoute: (app: FastifyInstance, receiver: DeliveryReceiver) => void): StartServer {
  return async (receiver, tls) => {
    const app = Fastify({ https: tls })
    const route: FastifyPluginCallback = (scope, _options, done) => {
      addRoute(scope, receiver)
      done()
    }
    await app.register(route)
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })
    return { origin, close: () => app.close() }
  }
}

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

const honoRoutes: [name: string, middleware: MiddlewareHandler[], makeHandler: MakeHandler][] = [
  ['toWebHandler and nothing before it', [], webHandler],
  ['toWebHandler behind a body limit', [bodyLimit({ maxSize: 2 ** 20 })], webHandler],
  ['receiver.handle and nothing before it', [], handle],
  ['receiver.handle behind the JSON validator', [validator('json', (value) => value)], handle],
]

describe('Hono', () => {
  test.each(honoRoutes)(
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

const nestParsers: [name: string, options: NestApplicationOptions][] = [
  ['its body parser', {}],
  ['its body parser and rawBody', { rawBody: true }],
  ['bodyParser: false', { bodyParser: false }],
]

describe.each(nestParsers)('NestJS 12 on Express, with %s', (_name, options) => {
  test('a middleware hands a typed notification to the handler', () =>
    expectTypedDelivery((receiver, tls) =>
      startNest(middlewareModule(receiver), { ...options, httpsOptions: tls }),
    ))

  test('a controller that takes request and response does', () =>
    expectTypedDelivery((receiver, tls) =>
      startNest(controllerModule(nodeHandlerController(receiver)), { ...options, httpsOptions: tls }),
    ))
})

describe('NestJS 12 on Express, with rawBody', () => {
  test('a controller that takes the raw body hands a typed notification to the handler', () =>
    expectTypedDelivery((receiver, tls) =>
      startNest(controllerModule(rawBodyController(receiver)), { rawBody: true, httpsOptions: tls }),
    ))
})

function middlewareModule(receiver: DeliveryReceiver) {
  class NotificationsModule {
    configure(consumer: MiddlewareConsumer) {
      consumer.apply(toNodeHandler(receiver)).forRoutes({ path: 'notifications', method: RequestMethod.POST })
    }
  }
  Module({})(NotificationsModule)
  return NotificationsModule
}

function nodeHandlerController(receiver: DeliveryReceiver) {
  const handleCallback = toNodeHandler(receiver)
  return class NotificationsController {
    receive(request: Request, response: ExpressResponse) {
      handleCallback(request, response)
    }
  }
}

function rawBodyController(receiver: DeliveryReceiver) {
  return class NotificationsController {
    async receive(request: RawBodyRequest<Request>, response: ExpressResponse) {
      const { method, headers, rawBody } = request
      const answer = await receiver.handle({ method, headers, body: rawBody })
      response.status(answer.status).set(answer.headers).end()
    }
  }
}

type NotificationsController = new () => { receive(request: Request, response: ExpressResponse): unknown }

/** Decorators are called as the functions they are: nothing that runs the tests has to compile them. */
function controllerModule(controller: NotificationsController) {
  const { prototype } = controller
  const method = Object.getOwnPropertyDescriptor(prototype, 'receive') ?? {}
  Post()(prototype, 'receive', method)
  Req()(prototype, 'receive', 0)
  Res()(prototype, 'receive', 1)
  Controller('notifications')(controller)
  class NotificationsModule {}
  Module({ controllers: [controller] })(NotificationsModule)
  return NotificationsModule
}

async function startNest(module: new () => object, options: NestApplicationOptions) {
  const app = await NestFactory.create<NestExpressApplication>(module, { ...options, logger: false })
  await app.listen(0, '127.0.0.1')
  return { origin: await app.getUrl(), close: () => app.close() }
}
