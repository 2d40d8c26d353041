/**
 * Validates webhook bodies in a handler of your own: no receiver, no client.
 *
 *     npm install ./notification-subscriber-*.tgz tsx
 *     npx tsx validate-only.mts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { safeParseDelivery, sampleDelivery, verifySecrets } from 'notification-subscriber/webhooks'

// The secret that callbacks bring as a header: in production the same after each start.
const { CALLBACK_TOKEN: token = randomBytes(24).toString('base64url'), PORT: port = '3000' } = process.env

// Connections stay open for longer than a load balancer keeps them, or some callbacks fail.
const server = createServer({ keepAliveTimeout: 65_000 }, async (request, response) => {
  if (!verifySecrets(request.headers, { token })) {
    response.writeHead(401).end()
    return
  }
  const body = await buffer(request).catch(() => undefined)
  if (body === undefined) return // The connection broke before the whole body was there.
  const result = safeParseDelivery(body)
  // 204 whatever the body: three other answers in a row end the subscription.
  response.writeHead(204).end()
  if (!result.success) {
    console.error(result.error.message)
    return
  }
  const { subscriptionId, notification } = result.data
  console.log(`Subscription ${subscriptionId}: ${notification.type}`, notification.payload)
}).listen(Number(port), '127.0.0.1')
await once(server, 'listening')
console.log(`Listening on http://127.0.0.1:${port}. Next, in another terminal, post a sample delivery:`)
console.log(
  `  curl -i -H 'token: ${token}' -d '${sampleDelivery('lowEnergyAgentOpened').body}' http://127.0.0.1:${port}/notifications`,
)

await new Promise((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve))
server.close()
await once(server, 'close')
console.log('Stopped. A receiver does all this, with limits on size and time: receive.mts')
