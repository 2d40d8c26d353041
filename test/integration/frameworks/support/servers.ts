/** One server of each kind, as its users would set it up. */
import { createServer } from 'node:https'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { toNodeHandler, toWebHandler } from 'notification-subscriber/webhooks'
import type { StartServer } from './expect-delivery.js'
import { startServer } from './running-server.js'

export interface ServerUnderTest {
  readonly name: string
  readonly start: StartServer
}

export const servers: readonly ServerUnderTest[] = [
  {
    name: 'node:https',
    start: (receiver, tls) => startServer(createServer(tls, toNodeHandler(receiver))),
  },
  {
    name: 'Express',
    start: (receiver, tls) =>
      startServer(
        createServer(tls, express().use(express.json()).post('/notifications', toNodeHandler(receiver))),
      ),
  },
  {
    name: 'Fastify',
    start: async (receiver, tls) => {
      const app = Fastify({ https: tls })
      app.post('/notifications', async ({ method, headers, body }, reply) => {
        const answer = await receiver.handle({ method, headers, body })
        return reply.code(answer.status).headers(answer.headers).send()
      })
      const origin = await app.listen({ host: '127.0.0.1', port: 0 })
      return { origin, close: () => app.close() }
    },
  },
  {
    name: 'Hono',
    start: (receiver, tls) => {
      const handleCallback = toWebHandler(receiver)
      const app = new Hono().post('/notifications', (context) => handleCallback(context.req.raw))
      return startServer(createAdaptorServer({ fetch: app.fetch, createServer, serverOptions: tls }))
    },
  },
]
