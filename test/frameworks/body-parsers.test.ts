/**
 * What a body parser before the route would answer by itself, with 400, 413 or 415, each of which counts as a failed
 * delivery: the recipes of docs/receiver.md put the route before it.
 */
import 'reflect-metadata'
import { createServer, request as httpsRequest } from 'node:https'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import express from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { type KeyAndCertificate, startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver, toFastifyPlugin, toNodeHandler } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import type { StartServer } from './support/expect-delivery.js'
import { lowEnergy } from './support/notifications.js'
import { startServer } from './support/running-server.js'
import { callbackToken } from './support/subscribed.js'

const { category: _category, username: _username, ...notification } = lowEnergy
const delivery = JSON.stringify({ subscriptionId: 1, notification })

const recipes: [name: string, start: StartServer][] = [
  [
    'Express 5, with the route before express.json()',
    (receiver, tls) => {
      const app = express()
      app.post('/notifications', toNodeHandler(receiver))
      app.use(express.json())
      return startServer(createServer(tls, app))
    },
  ],
  [
    'Express 4, with the route before express.json()',
    (receiver, tls) => {
      const app = express4()
      app.post('/notifications', toNodeHandler(receiver))
      app.use(express4.json())
      return startServer(createServer(tls, app))
    },
  ],
  ['Fastify, with toFastifyPlugin', startFastify],
  ['NestJS, with the route before its body parser', startNest],
]

describe.each(recipes)('%s', (_name, start) => {
  test.each<[string, string, Record<string, string>, 'handled' | 'invalid']>([
    ['a body of 900 kB', delivery.padEnd(900_000), { 'content-type': 'application/json' }, 'handled'],
    ['malformed JSON', delivery.slice(1), { 'content-type': 'application/json' }, 'invalid'],
    ['an empty body', '', { 'content-type': 'application/json' }, 'invalid'],
    ['a wrong charset', delivery, { 'content-type': 'application/json; charset=utf-99' }, 'handled'],
    ['another content type', delivery, { 'content-type': 'text/csv' }, 'handled'],
    ['a content type that is none', delivery, { 'content-type': 'json' }, 'handled'],
    ['no content type', delivery, {}, 'handled'],
    ['an unknown encoding', delivery, { 'content-encoding': 'zstd' }, 'invalid'],
  ])('answers %s with 204', async (_what, body, headers, expected) => {
    const seen: string[] = []
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      onInvalid: ({ bodyText }) => seen.push(bodyText === body ? 'invalid' : 'another body'),
    }).onAny(() => seen.push('handled'))
    await using server = await startRecipe(start, receiver)
    expect(await server.post(body, { ...headers, token: callbackToken })).toBe(204)
    expect(seen).toEqual([expected])
  })

  test('refuses a stranger, and what is larger than maxBodyBytes', async () => {
    const refused: number[] = []
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      maxBodyBytes: 1_000,
      onRefused: ({ status }) => refused.push(status),
    }).onAny(() => expect.unreachable())
    await using server = await startRecipe(start, receiver)
    expect(await server.post(delivery, { token: 'of-someone-else' })).toBe(401)
    expect(await server.post(delivery.padEnd(1_001), { token: callbackToken })).toBe(413)
    expect(refused).toEqual([401, 413])
  })
})

describe('toFastifyPlugin', () => {
  test('leaves the other routes of the app as they are, and takes a prefix', async () => {
    const receiver = new DeliveryReceiver({ secrets: { token: callbackToken } }).onAny(() => {})
    const app = Fastify()
    await app.register(toFastifyPlugin(receiver, { path: '/notifications' }), { prefix: '/hooks' })
    app.post('/other', async ({ body }) => ({ body }))
    const headers = { token: callbackToken, 'content-type': 'application/json' }
    const inject = (url: string, payload: string) => app.inject({ method: 'POST', url, headers, payload })
    expect((await inject('/hooks/notifications', delivery)).statusCode).toBe(204)
    expect((await inject('/hooks/notifications', '{')).statusCode).toBe(204)
    expect((await inject('/notifications', delivery)).statusCode).toBe(404)
    expect((await inject('/other', '{"a":1}')).json()).toEqual({ body: { a: 1 } })
    expect((await inject('/other', '{')).statusCode).toBe(400)
    await app.close()
  })

  test('comes after the onRequest hooks of the app, which may refuse', async () => {
    const receiver = new DeliveryReceiver({ allowUnauthenticated: true }).onAny(() => expect.unreachable())
    const app = Fastify()
    app.addHook('onRequest', async (_request, reply) => reply.code(403).send())
    await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
    const { statusCode } = await app.inject({ method: 'POST', url: '/notifications', payload: delivery })
    expect(statusCode).toBe(403)
    await app.close()
  })
})

async function startFastify(receiver: DeliveryReceiver, tls: KeyAndCertificate) {
  const app = Fastify({ https: tls })
  await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  return { origin, close: () => app.close() }
}

async function startNest(receiver: DeliveryReceiver, tls: KeyAndCertificate) {
  class AppModule {}
  Module({})(AppModule)
  const app = await NestFactory.create<NestExpressApplication>(AppModule, {
    httpsOptions: tls,
    logger: false,
  })
  app.use('/notifications', toNodeHandler(receiver))
  await app.listen(0, '127.0.0.1')
  return { origin: await app.getUrl(), close: () => app.close() }
}

/** Starts a server, and sends it what the emulator never would. */
async function startRecipe(start: StartServer, receiver: DeliveryReceiver) {
  const emulator = await startEmulator()
  const { origin, close } = await start(receiver, emulator.tls)
  return {
    post: (body: string, headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const { ca } = emulator
        const request = httpsRequest(`${origin}/notifications`, { method: 'POST', headers, ca, agent: false })
        request.on('response', (response) => {
          response.resume()
          resolve(response.statusCode)
        })
        request.on('error', reject)
        request.setHeader('content-length', Buffer.byteLength(body))
        request.end(body)
      }),
    async [Symbol.asyncDispose]() {
      await emulator.close()
      await close()
    },
  }
}
