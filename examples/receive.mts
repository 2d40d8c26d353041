/**
 * Receives notifications in plain Node.js, and reports every loss.
 *
 *     npm install ./notification-subscriber-*.tgz tsx
 *     npx tsx receive.mts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { DeliveryReceiver, sampleDelivery, toNodeHandler } from 'notification-subscriber/webhooks'

// The secret that callbacks bring as a header: in production the same after each start.
const { CALLBACK_TOKEN: token = randomBytes(24).toString('base64url'), PORT: port = '3000' } = process.env

const receiver = new DeliveryReceiver({ secrets: { token } })
  .on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
    console.log(
      `Subscription ${subscriptionId}: ${payload.username} has low energy on call ${payload.callId}`,
    )
  })
  .onAny(({ id, type }) => console.log(`Notification ${id}: ${type}`))

const handleCallback = toNodeHandler(receiver)
// Connections stay open for longer than a load balancer keeps them, or some callbacks fail.
const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
  if (request.url?.startsWith('/notifications')) handleCallback(request, response)
  else response.writeHead(404).end()
}).listen(Number(port), '127.0.0.1') // in a container on every address: without the second argument
await once(server, 'listening')
console.log(
  `Listening on http://127.0.0.1:${port}/notifications. Next, in another terminal, post a sample delivery:`,
)
console.log(
  `  curl -i -H 'token: ${token}' -d '${sampleDelivery('lowEnergyAgentOpened').body}' http://127.0.0.1:${port}/notifications`,
)

// A clean shutdown: no new callbacks, then the handlers that still run.
// A signal may come twice, as npx passes it on: `once` would let the second one end the process.
await new Promise((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve))
await receiver.close(server, { timeoutMs: 10_000 })
console.log('Stopped. To subscribe this receiver to notifications: subscribe-and-unsubscribe.mts')
