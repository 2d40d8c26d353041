import { setTimeout } from 'node:timers/promises'
import Fastify, { type FastifyServerOptions, type onRequestHookHandler } from 'fastify'
import { DeliveryReceiver, toFastifyPlugin } from 'notification-subscriber/webhooks'
import { expect, test } from 'vitest'
import { lowEnergyDelivery } from '../deliveries.js'
import { authenticated, secrets } from '../support.js'

const payload = JSON.stringify(lowEnergyDelivery())
const url = '/notifications'

test('toFastifyPlugin leaves the other routes of the app as they are, and takes a prefix', async () => {
  const app = Fastify()
  await app.register(toFastifyPlugin(new DeliveryReceiver({ secrets }), { path: url }), { prefix: '/hooks' })
  app.post('/other', async ({ body }) => ({ body }))
  const headers = { ...authenticated, 'content-type': 'application/json' }
  const inject = (url: string, payload: string) => app.inject({ method: 'POST', url, headers, payload })
  expect((await inject('/hooks/notifications', payload)).statusCode).toBe(204)
  expect((await inject('/hooks/notifications', '{')).statusCode).toBe(204)
  expect((await inject(url, payload)).statusCode).toBe(404)
  expect((await inject('/other', '{"a":1}')).json()).toEqual({ body: { a: 1 } })
  expect((await inject('/other', '{')).statusCode).toBe(400)
  await app.close()
})

const remap: onRequestHookHandler = async (request) => {
  request.headers = { ...request.headers, token: String(request.headers['x-remapped-token']) }
}
const remapped = { 'x-remapped-token': authenticated.token }

test.each<[string, FastifyServerOptions, onRequestHookHandler, Record<string, string>, number]>([
  [
    'answers itself, also after the handlerTimeout',
    { handlerTimeout: 1 },
    async () => {},
    authenticated,
    204,
  ],
  ['sees the headers as an onRequest hook left them', {}, remap, remapped, 204],
  ['runs after a hook that refuses', {}, async (_, reply) => reply.code(403).send(), authenticated, 403],
])('in an app the route %s', async (_, options, hook, headers, status) => {
  const received: string[] = []
  const receiver = new DeliveryReceiver({ secrets }).onAny(async ({ id }) => {
    received.push(id)
    await setTimeout(50)
  })
  const app = Fastify(options)
  app.addHook('onRequest', hook)
  await app.register(toFastifyPlugin(receiver, { path: url }))
  expect((await app.inject({ method: 'POST', url, headers, payload })).statusCode).toBe(status)
  expect(received).toHaveLength(status === 204 ? 1 : 0)
  await app.close()
})
