/**
 * Loses no notification that was answered, on one machine: each is on the disk before its callback is answered, and
 * leaves the disk when the work is done.
 *
 *     npm install ./notification-subscriber-*.tgz tsx
 *     npx tsx spool-and-work.mts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { DeliverySpool } from 'notification-subscriber/spool'
import {
  type Delivery,
  DeliveryReceiver,
  sampleDelivery,
  toNodeHandler,
} from 'notification-subscriber/webhooks'

// The secret that callbacks bring as a header: in production the same after each start.
const { CALLBACK_TOKEN: token = randomBytes(24).toString('base64url') } = process.env
const { PORT: port = '3000', SPOOL_PATH: path = './spool' } = process.env

/** To replace: the work. It may run twice for one `notification.id`. */
async function work({ subscriptionId, notification }: Delivery): Promise<void> {
  // If this throws, it is called again: after one second, then two, then four, up to a minute.
  console.log(`Subscription ${subscriptionId}: ${notification.type} ${notification.id} is done`)
}

const spool = await DeliverySpool.open({ path, deliver: work })
const receiver = new DeliveryReceiver({ secrets: { token }, onInvalid: spool.keepInvalid }).onAny(spool.keep)

// Connections stay open for longer than a load balancer keeps them, or some callbacks fail.
const server = createServer({ keepAliveTimeout: 65_000 }, toNodeHandler(receiver))
server.listen(Number(port), '127.0.0.1') // in a container on every address: without the second argument
await once(server, 'listening')
console.log(`Listening on http://127.0.0.1:${port}, with ${spool.size} deliveries of an earlier run.`)
console.log('Next, in another terminal, post a sample delivery:')
console.log(
  `  curl -i -H 'token: ${token}' -d '${sampleDelivery('lowEnergyAgentOpened').body}' http://127.0.0.1:${port}/`,
)

// Waiting deliveries are left for the next start.
// A signal may come twice, as npx passes it on: `once` would let the second one end the process.
await new Promise((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve))
await receiver.close(server, { timeoutMs: 10_000 })
console.log(
  `Stopped: ${await spool.close()} deliveries are left for the next start. Look at the folder ${path}`,
)
