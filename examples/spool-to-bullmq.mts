/**
 * Loses no notification that was answered, and spreads the work over machines: the spool has each on the disk
 * before its callback is answered, and adds it to a BullMQ queue as soon as Redis is up. `spool-to-bullmq-worker.mts`
 * does the work. How to set up Redis: docs/spool.md, BullMQ on Redis.
 *
 *     npm install ./notification-subscriber-*.tgz bullmq ioredis tsx
 *     npx tsx spool-to-bullmq.mts
 *
 * Needs Redis, at redis://127.0.0.1:6379 or at REDIS_URL.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
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
  // A node that falls silent keeps its sockets: without a limit the client would wait for it for ever.
  socketTimeout: 5_000,
  // After a failover the old node takes no writes: a new connection finds the new one.
  reconnectOnError: ({ message }) => message.startsWith('READONLY'),
})
connection.on('error', ({ message }) => console.error(`Redis: ${message}`))
const queue = new Queue<Delivery>('notifications', { connection })
queue.on('error', ({ message }) => console.error(`Queue: ${message}`))

const spool = await DeliverySpool.open({
  path: SPOOL_PATH,
  // While Redis is down, or accepts connections and answers nothing, `queue.add` may wait for minutes.
  deliverTimeoutMs: 5_000,
  deliver: (delivery) =>
    queue.add(delivery.notification.type, delivery, {
      // Makes one job of duplicates, for as long as the finished job is kept: longer than your longest outage. Not the
      // id alone: BullMQ refuses integers, and most ids with a colon.
      jobId: `n-${encodeURIComponent(delivery.notification.id)}`,
      removeOnComplete: { age: 24 * 60 * 60 },
      // About a week. The worker says when: exponential delays of BullMQ have no limit, and would soon be days.
      attempts: 1_000,
      backoff: { type: 'custom' },
    }),
})

const receiver = new DeliveryReceiver({
  secrets: { token },
  onInvalid: spool.keepInvalid,
  // The disk is full or fails: this notification is lost.
  onError: (error, { id }) => console.error(`Not kept: ${id}`, error),
}).onAny(spool.keep)

// Behind a proxy that terminates TLS: the service calls https: addresses only. Connections stay open for longer than a load
// balancer keeps them, or some callbacks fail.
const server = createServer({ keepAliveTimeout: 65_000 }, toNodeHandler(receiver))
server.listen(Number(PORT), '127.0.0.1') // in a container on every address: without the second argument
await once(server, 'listening')
// A signal may come twice, as npx passes it on: `once` would let the second one end the process.
const stopping = new Promise((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve))
console.log(`Listening on http://127.0.0.1:${PORT}. Next, in two more terminals:`)
console.log(`  npx tsx spool-to-bullmq-worker.mts`)
console.log(
  `  curl -i -H 'token: ${token}' -d '${sampleDelivery('lowEnergyAgentOpened').body}' http://127.0.0.1:${PORT}/`,
)

await stopping
await receiver.close(server, { timeoutMs: 10_000 })
const left = await spool.close()
// While Redis is down, `close` would wait for it.
await Promise.race([queue.close(), sleep(5_000)])
connection.disconnect()
console.log(`Stopped: ${left} deliveries are left for the next start. Look at the folder ${SPOOL_PATH}`)
process.exit()
