/** Real servers whose routes are the code blocks of docs/receiver.md. */
import { server as hapiServer } from '@hapi/hapi'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { createApp, type EventHandler, toNodeListener } from 'h31'
import { Hono } from 'hono'
import Koa from 'koa'
import type { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { functionUrl, type LambdaHandler } from './function-url.js'
import { nestApp, nestVersions } from './nest.js'
import { runBlock } from './page-blocks.js'
import { type StartServer, secure } from './subscribed.js'

/** By what the heading of the block names. */
export const pageServers = {
  async express(receiver, tls) {
    const app = express()
    await runBlock('Node.js, Express, Connect', { app, receiver })
    return secure(tls, app)
  },
  async express4(receiver, tls) {
    const app = express4()
    await runBlock('Node.js, Express, Connect', { app, receiver }, { express: 'express4' })
    return secure(tls, app)
  },
  async fastify(receiver, tls) {
    const app = Fastify({ https: tls })
    await runBlock('Fastify', { app, receiver })
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })
    return { origin, [Symbol.asyncDispose]: () => app.close() }
  },
  nest11: nestWithMiddleware(11),
  nest12: nestWithMiddleware(12),
  async nuxt(receiver, tls) {
    const { default: route } = await runBlock('Nuxt, Nitro, h3', { receiver }, { h3: 'h31' })
    const app = createApp().use('/notifications', route as EventHandler)
    return secure(tls, toNodeListener(app))
  },
  async koa(receiver, tls) {
    const app = new Koa()
    await runBlock('Koa', { app, receiver })
    return secure(tls, app.callback())
  },
  async hapi(receiver, tls) {
    const app = hapiServer({ host: '127.0.0.1', port: 0, tls })
    await runBlock('hapi', { app, receiver })
    await app.start()
    return { origin: app.info.uri, [Symbol.asyncDispose]: () => app.stop() }
  },
  async bun(receiver, tls) {
    const { Bun } = await runBlockOfWeb(receiver)
    const handle = (request: Request) =>
      Bun.routes.get(new URL(request.url).pathname)?.(request) ?? new Response(null, { status: 404 })
    return secure(tls, getRequestListener(handle))
  },
  async hono(receiver, tls) {
    const { app } = await runBlockOfWeb(receiver)
    return secure(tls, getRequestListener(app.fetch))
  },
  async worker(receiver, tls) {
    const { worker } = await runBlockOfWeb(receiver)
    const { fetch } = worker as { fetch(request: Request, env: object, context: object): Promise<Response> }
    const handle = (request: Request) => fetch(request, {}, { waitUntil: () => {} })
    return secure(tls, getRequestListener(handle))
  },
  async lambda(receiver, tls) {
    const { handler } = await runBlock('AWS Lambda', { receiver })
    return secure(tls, functionUrl(handler as LambdaHandler))
  },
} satisfies Record<string, StartServer>

/** One block for three platforms. */
async function runBlockOfWeb(receiver: DeliveryReceiver) {
  const app = new Hono()
  const routes = new Map<string, (request: Request) => Promise<Response>>()
  const serve = (options: { routes: Record<string, (request: Request) => Promise<Response>> }) => {
    for (const [path, handle] of Object.entries(options.routes)) routes.set(path, handle)
  }
  const Bun = { serve, routes }
  const { worker } = await runBlock('Hono, Deno, Bun, Workers', { app, receiver, Bun })
  return { app, Bun, worker }
}

function nestWithMiddleware(version: keyof typeof nestVersions): StartServer {
  return (receiver, tls) =>
    nestApp(nestVersions[version], tls, (app) => runBlock('NestJS', { app, receiver }))
}
