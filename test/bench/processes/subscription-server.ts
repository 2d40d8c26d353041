/** The service as far as creating needs it: tokens and subscriptions, by plain HTTP on loopback. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { message, readMessages } from '../http-messages.js'
import { serve } from '../processes.js'

const json = { 'content-type': 'application/json', 'cache-control': 'no-store' }
const token = message(
  'HTTP/1.1 200 OK',
  json,
  JSON.stringify({ access_token: 'a'.repeat(800), token_type: 'Bearer', expires_in: 3600 }),
)

let subscriptions = 0
let sockets = 0
let maxSockets = 0

const server = createServer((socket) => {
  maxSockets = Math.max(maxSockets, ++sockets)
  socket.on('close', () => sockets--)
  socket.on('error', () => socket.destroy())
  readMessages(socket, (head) => {
    if (head.startsWith('POST /auth/')) socket.write(token, 'latin1')
    else if (head.startsWith('POST /api/subscriptions ')) socket.write(created(++subscriptions), 'latin1')
    else socket.destroy(new Error(`not a request of this service: ${head}`))
  })
})

function created(subscriptionId: number): string {
  return message('HTTP/1.1 201 Created', json, `{"subscription_id":${subscriptionId}}`)
}

server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

const functions = {
  origin: () => `http://127.0.0.1:${port}`,
  /** What there was since it was asked last. */
  counts: () => {
    const counts = { subscriptions, maxSockets }
    subscriptions = 0
    maxSockets = sockets
    return counts
  },
}
export type SubscriptionServerFunctions = typeof functions
serve(functions)
