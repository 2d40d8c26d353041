/** What one writes without a spool: the handler hands each notification to the queue, with the default settings. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'

const { REDIS_URL = '', CALLBACK_TOKEN = '', PORT = '0' } = process.env
const connection = new Redis(REDIS_URL)
connection.on('error', () => {})
const queue = new Queue('notifications', { connection })
queue.on('error', () => {})
const receiver = new DeliveryReceiver({
  secrets: { token: CALLBACK_TOKEN },
  onError: (_error, { id }) => console.error(`Not kept: ${id}`),
}).onAny((notification, { delivery }) =>
  queue.add(notification.type, delivery, {
    jobId: `n-${notification.id}`,
    removeOnComplete: { age: 86_400 },
  }),
)
const server = createServer(toNodeHandler(receiver)).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
console.log('Receiving')
