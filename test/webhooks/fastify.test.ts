import { setTimeout } from 'node:timers/promises'
import Fastify from 'fastify'
import { DeliveryReceiver, toFastifyPlugin } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { lowEnergyDelivery } from './deliveries.js'
import { authenticated, secrets } from './support.js'

const delivery = JSON.stringify(lowEnergyDelivery())

describe('toFastifyPlugin', () => {
  test('leaves the other routes of the app as they are, and takes a prefix', async () => {
    const receiver = new DeliveryReceiver({ secrets }).onAny(() => {})
    const app = Fastify()
    await app.register(toFastifyPlugin(receiver, { path: '/notifications' }), { prefix: '/hooks' })
    app.post('/other', async ({ body }) => ({ body }))
    const headers = { ...authenticated, 'content-type': 'application/json' }
    const inject = (url: string, payload: string) => app.inject({ method: 'POST', url, headers, payload })
    expect((await inject('/hooks/notifications', delivery)).statusCode).toBe(204)
    expect((await inject('/hooks/notifications', '{')).statusCode).toBe(204)
    expect((await inject('/notifications', delivery)).statusCode).toBe(404)
    expect((await inject('/other', '{"a":1}')).json()).toEqual({ body: { a: 1 } })
    expect((await inject('/other', '{')).statusCode).toBe(400)
    await app.close()
  })

  test('answers itself, also after the handlerTimeout of the app', async () => {
    const receiver = new DeliveryReceiver({ secrets }).onAny(() => setTimeout(50))
    const app = Fastify({ handlerTimeout: 1 })
    await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
    const options = {
      method: 'POST',
      url: '/notifications',
      headers: authenticated,
      payload: delivery,
    } as const
    expect((await app.inject(options)).statusCode).toBe(204)
    await app.close()
  })

  test('sees the headers as a hook of the app left them', async () => {
    const receiver = new DeliveryReceiver({ secrets }).onAny(() => {})
    const app = Fastify()
    app.addHook('onRequest', async (request) => {
      request.headers = { ...request.headers, token: String(request.headers['x-remapped-token']) }
    })
    await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
    const headers = { 'x-remapped-token': authenticated.token }
    const { statusCode } = await app.inject({
      method: 'POST',
      url: '/notifications',
      headers,
      payload: delivery,
    })
    expect(statusCode).toBe(204)
    await app.close()
  })

  test('runs after the onRequest hooks of the app, which may refuse', async () => {
    const receiver = new DeliveryReceiver({ allowUnauthenticated: true }).onAny(() => expect.unreachable())
    const app = Fastify()
    app.addHook('onRequest', async (_request, reply) => reply.code(403).send())
    await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
    const { statusCode } = await app.inject({ method: 'POST', url: '/notifications', payload: delivery })
    expect(statusCode).toBe(403)
    await app.close()
  })
})
