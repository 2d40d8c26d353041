/** One server that receives callbacks, measured alone. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import Fastify from 'fastify'
import { DeliverySpool } from '../../../dist/spool/index.js'
import { DeliveryReceiver, toNodeHandler } from '../../../dist/webhooks/index.js'
import { callbackToken } from '../deliveries.js'
import type { Cost } from '../measure.js'
import { serve } from '../processes.js'
import { deliveryJsonSchema, zodDelivery } from '../validators.js'

let deliveries = 0

/** What every server does with a delivery, and waits for. */
async function handle(subscriptionId: number): Promise<void> {
  if (Number.isInteger(subscriptionId)) deliveries++
}

const secrets = { token: callbackToken }
const receiver = new DeliveryReceiver({ secrets }).onAny((_notification, { subscriptionId }) =>
  handle(subscriptionId),
)

/** Resolves when every delivery that was kept is handled. */
let settle = async () => {}

/** None, so that a machine that is busy with something else breaks no connection. */
const keepAliveTimeout = 0

/** Each answers a callback on any path, and listens on the port of its result. */
const servers = {
  ours: () => listen(toNodeHandler(receiver)),
  /** Has each delivery on the disk before the answer. */
  'ours with a spool': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bench-spool-'))
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
    const spool = await DeliverySpool.open({ path: join(folder, 'received'), deliver: async () => {} })
    settle = async () => {
      while (spool.size > 0) await sleep(10)
    }
    return listen(toNodeHandler(new DeliveryReceiver({ secrets }).onAny(spool.keep)))
  },
  /** Reads and parses, and checks nothing. */
  'bare node:http': () =>
    listen((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', async () => {
        await handle(JSON.parse(Buffer.concat(chunks).toString()).subscriptionId)
        response.writeHead(204).end()
      })
    }),
  'Express + zod': () => {
    const app = express()
    app.post('/notifications', express.json(), async (request, response) => {
      if (request.get('token') !== callbackToken) return void response.sendStatus(401)
      const { data, error } = zodDelivery.safeParse(request.body)
      if (error) return void response.sendStatus(400)
      await handle(data.subscriptionId)
      response.status(204).end()
    })
    return listen(app)
  },
  'Fastify + Ajv': async () => {
    const app = Fastify({
      keepAliveTimeout,
      ajv: { customOptions: { strictRequired: false, coerceTypes: false } },
    })
    app.post<{ Body: { subscriptionId: number } }>(
      '/notifications',
      { schema: { body: deliveryJsonSchema } },
      async (request, reply) => {
        if (request.headers.token !== callbackToken) return reply.code(401).send()
        await handle(request.body.subscriptionId)
        return reply.code(204).send()
      },
    )
    await app.listen({ host: '127.0.0.1', port: 0 })
    return (app.server.address() as AddressInfo).port
  },
} as const satisfies Record<string, () => Promise<number>>

type ReceivingServer = keyof typeof servers

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer({ keepAliveTimeout }, listener)
  server.listen({ host: '127.0.0.1', port: 0, backlog: 2_048 })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const port = await servers[process.argv[2] as ReceivingServer]()
let since = { cpu: process.cpuUsage(), at: performance.now() }

const functions = {
  port: () => port,
  settle: () => settle(),
  begin: () => {
    deliveries = 0
    since = { cpu: process.cpuUsage(), at: performance.now() }
  },
  cost: (): Cost => {
    const { user, system } = process.cpuUsage(since.cpu)
    return { calls: deliveries, elapsedMs: performance.now() - since.at, cpuMicros: user + system }
  },
}
export type ReceiveFunctions = typeof functions
serve(functions)
