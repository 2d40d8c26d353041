/** A receiver that keeps what it gets before the answer, or one that does not. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeliverySpool } from '../../../dist/spool/index.js'
import { DeliveryReceiver, toNodeHandler } from '../../../dist/webhooks/index.js'
import { callbackToken } from '../deliveries.js'
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

const functions = {
  port: () => (server.address() as AddressInfo).port,
  settle: async () => {
    while (spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  },
}
export type SpoolFunctions = typeof functions
serve(functions)
