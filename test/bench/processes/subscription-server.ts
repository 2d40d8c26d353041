/** The service as far as creating needs it: tokens and subscriptions, by HTTPS on loopback. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createServer } from 'node:tls'
import { startEmulator } from '../../../dist/emulator/index.js'
import { message, readMessages } from '../http-messages.js'
import { serve } from '../processes.js'

const json = { 'content-type': 'application/json', 'cache-control': 'no-store' }
const token = message(
  'HTTP/1.1 200 OK',
  json,
  JSON.stringify({ access_token: 'a'.repeat(800), token_type: 'Bearer', expires_in: 3600 }),
)

let subscriptions = 0

function onConnection(socket: Socket): void {
  socket.on('error', () => socket.destroy())
  readMessages(socket, (head) => {
    if (head.startsWith('POST /auth/')) socket.write(token, 'latin1')
    else if (head.startsWith('POST /api/subscriptions ')) socket.write(created(++subscriptions), 'latin1')
    else socket.destroy(new Error(`not a request of this service: ${head}`))
  })
}

function created(subscriptionId: number): string {
  return message('HTTP/1.1 201 Created', json, `{"subscription_id":${subscriptionId}}`)
}

const { ca, tls } = await certificate()
const server = createServer(tls, onConnection)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

const caFile = join(mkdtempSync(join(tmpdir(), 'bench-')), 'ca.pem')
writeFileSync(caFile, ca)
process.on('exit', () => rmSync(dirname(caFile), { recursive: true }))

const functions = { address: () => ({ origin: `https://127.0.0.1:${port}`, caFile }) }
export type SubscriptionServerFunctions = typeof functions
serve(functions)

async function certificate() {
  await using emulator = await startEmulator()
  return { ca: emulator.ca, tls: emulator.tls }
}
