/** A receiver that keeps what it gets before the answer, or one that does not. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeliverySpool } from '../../../dist/spool/index.js'
import { DeliveryReceiver, toNodeHandler } from '../../../dist/webhooks/index.js'
import { callbackToken, deliveryOf } from '../deliveries.js'
import { heapAfterCollection } from '../measure.js'
import { serve } from '../processes.js'

const folder = mkdtempSync(join(tmpdir(), 'bench-spool-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const isKept = process.argv[2] === 'ours'
const spool = await DeliverySpool.open({ path: join(folder, 'received'), deliver: async () => {} })
const receiver = new DeliveryReceiver({ secrets: { token: callbackToken } }).onAny(
  isKept ? spool.keep : async () => {},
)
const server = createServer({ keepAliveTimeout: 0 }, toNodeHandler(receiver))
server.listen({ host: '127.0.0.1', port: 0 })
await once(server, 'listening')

const never = () => new Promise<never>(() => {})
let waiting: DeliverySpool | undefined

async function elapsed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

const functions = {
  port: () => (server.address() as AddressInfo).port,
  settle: async () => {
    while (spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  },
  /** What the heap grows by when so many entries wait, in bytes. */
  heapOfWaiting: async (count: number) => {
    waiting = await DeliverySpool.open({ path: join(folder, 'waiting'), deliver: never, maxBytes: 2 ** 40 })
    const before = await heapAfterCollection()
    for (let id = 0; id < count; id += 100) {
      const deliveries = Array.from({ length: 100 }, (_, index) => deliveryOf(id + index))
      await Promise.all(deliveries.map((delivery) => waiting?.keep(undefined, { delivery })))
    }
    return Math.max(0, (await heapAfterCollection()) - before)
  },
  /** What closing and opening them again takes, in milliseconds. */
  reopen: async () => {
    const closeMs = await elapsed(async () => waiting?.close({ timeoutMs: 0 }))
    const openMs = await elapsed(async () => {
      waiting = await DeliverySpool.open({ path: join(folder, 'waiting'), deliver: never, maxBytes: 2 ** 40 })
    })
    const left = waiting?.size ?? 0
    await waiting?.close({ timeoutMs: 0 })
    return { closeMs, openMs, left }
  },
}
export type SpoolFunctions = typeof functions
serve(functions)
