/**
 * Loses no notification that was answered, and spreads the work over machines: the spool has each on the disk
 * before its callback is answered, and hands it to a BullMQ queue on Redis as soon as that takes it. The work is
 * done by `spool-to-bullmq-worker.mts`. docs/spool.md says why each setting is as it is.
 *
 *     npm install notification-subscriber bullmq ioredis tsx
 *     npx tsx spool-to-bullmq.mts
 *
 * Needs Redis, at redis://127.0.0.1:6379 or at REDIS_URL.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { DeliverySpool } from 'notification-subscriber/spool'
import {
  type Delivery,
  DeliveryReceiver,
  sampleDelivery,
  toNodeHandler,
} from 'notification-subscriber/webhooks'

const { REDIS_URL = 'redis://127.0.0.1:6379', SPOOL_PATH = './spool', PORT = '3000' } = process.env
// The secret that callbacks bring as a header: in production the same after each start.
const { CALLBACK_TOKEN: token = randomBytes(24).toString('base64url') } = process.env

const connection = new Redis(REDIS_URL, {
  // While Redis is down, deliveries wait in the spool, and not in the memory of this process.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
})
connection.on('error', ({ message }) => console.error(`Redis: ${message}`))
const queue = new Queue<Delivery>('notifications', { connection })
queue.on('error', ({ message }) => console.error(`Queue: ${message}`))

const spool = await DeliverySpool.open({
  path: SPOOL_PATH,
  // The only limit that also holds for a Redis that accepts connections and answers nothing.
  deliverTimeoutMs: 5_000,
  deliver: (delivery) =>
    queue.add(delivery.notification.type, delivery, {
      // A delivery that comes twice is one job, for as long as the finished job is there. Not the id alone: BullMQ
      // refuses ids that look like integers.
      jobId: `n-${delivery.notification.id}`,
      removeOnComplete: { age: 24 * 60 * 60 },
      attempts: 100,
      backoff: { type: 'exponential', delay: 1_000 },
    }),
})

const receiver = new DeliveryReceiver({
  secrets: { token },
  onInvalid: spool.keepInvalid,
  // The disk is full or fails: this notification is in danger.
  onError: (error, { id }) => console.error(`Not kept: ${id}`, error),
}).onAny(spool.keep)

// Behind something that ends TLS: the service calls https: addresses only.
const server = createServer(toNodeHandler(receiver)).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
console.log(`Listening on http://127.0.0.1:${PORT}. Next, in two more terminals:`)
console.log(`  npx tsx spool-to-bullmq-worker.mts`)
console.log(
  `  curl -i -H 'token: ${token}' -d '${sampleDelivery('lowEnergyAgentOpened').body}' http://127.0.0.1:${PORT}/`,
)

await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
await new Promise((resolve) => server.close(resolve))
await receiver.drain()
const left = await spool.close()
await queue.close()
connection.disconnect()
console.log(`Stopped: ${left} deliveries are left for the next start. Look at the folder ${SPOOL_PATH}`)
