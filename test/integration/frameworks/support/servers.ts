/** One server of each kind, as its users would set it up; and the same with a route that answers 500. */
import { createServer } from 'node:https'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import { toNodeHandler, toWebHandler } from 'notification-subscriber/webhooks'
import type { StartServer } from './expect-delivery.js'
import type { RunningServer } from './running-server.js'
import { startServer } from './running-server.js'

export interface ServerUnderTest {
  readonly name: string
  readonly start: StartServer
  readonly startFailing: (tls: KeyAndCertificate) => Promise<RunningServer>
}

export const servers: readonly ServerUnderTest[] = [
  {
    name: 'node:https',
    start: (receiver, tls) => startServer(createServer(tls, toNodeHandler(receiver))),
    startFailing: (tls) =>
      startServer(createServer(tls, (_request, response) => response.writeHead(500).end())),
  },
  {
    name: 'Express',
    start: (receiver, tls) =>
      startServer(
        createServer(tls, express().use(express.json()).post('/notifications', toNodeHandler(receiver))),
      ),
    startFailing: (tls) =>
      startServer(
        createServer(
          tls,
          express().post('/notifications', (_request, response) => void response.sendStatus(500)),
        ),
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
    startFailing: async (tls) => {
      const app = Fastify({ https: tls })
      app.post('/notifications', async (_request, reply) => reply.code(500).send())
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
    startFailing: (tls) => {
      const app = new Hono().post('/notifications', (context) => context.body(null, 500))
      return startServer(createAdaptorServer({ fetch: app.fetch, createServer, serverOptions: tls }))
    },
  },
]
