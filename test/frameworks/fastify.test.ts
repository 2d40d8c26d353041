import Fastify, { type FastifyInstance, type FastifyPluginCallback } from 'fastify'
import { type DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { describe, test } from 'vitest'
import { expectTypedDelivery, type StartServer } from './support/expect-delivery.js'

const json = 'application/json'

const bodyParsers: [name: string, addTo: (app: FastifyInstance) => void][] = [
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
  test.each(bodyParsers)('with %s, a route hands a typed notification to the handler', (_name, addParser) =>
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
