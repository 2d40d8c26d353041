/**
 * Does the work that `spool-to-bullmq.mts` puts into the queue; run as many as you like.
 *
 *     npm install ./notification-subscriber-*.tgz bullmq ioredis tsx
 *     npx tsx spool-to-bullmq-worker.mts
 *
 * Needs Redis, at redis://127.0.0.1:6379 or at REDIS_URL.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { Delivery } from 'notification-subscriber/webhooks'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

/** To replace: the work. It may run twice for one notification, if a worker dies before it has reported the job as done. */
async function work({ notification }: Delivery): Promise<void> {
  console.log(`Done: ${notification.id}`)
}

// BullMQ demands this setting: a worker waits for Redis without a limit.
const connection = new Redis(REDIS_URL, {
  maxRetriesPerRequest: null,
  // A node that falls silent keeps its sockets. Longer than the calls in which a worker waits for jobs, at most 10 seconds.
  socketTimeout: 15_000,
  // After a failover the old node takes no writes: a new connection finds the new one.
  reconnectOnError: ({ message }) => message.startsWith('READONLY'),
})
connection.on('error', ({ message }) => console.error(`Redis: ${message}`))

const worker = new Worker<Delivery>('notifications', (job) => work(job.data), {
  connection,
  concurrency: 8,
  // When a job that failed is done again: after 1, 2, 4 … seconds, and at most 10 minutes.
  settings: { backoffStrategy: (attempts) => Math.min(1_000 * 2 ** (attempts - 1), 600_000) },
  // How long the jobs of a worker that died wait until another worker takes them.
  lockDuration: 10_000,
  stalledInterval: 5_000,
  // How often a job may lose its worker before it fails: every restart counts. Default: 1.
  maxStalledCount: 100,
})
worker.on('error', ({ message }) => console.error(`Worker: ${message}`))
// A signal may come twice, as npx passes it on: `once` would let the second one end the process.
const stopping = new Promise((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve))
await Promise.race([worker.waitUntilReady(), stopping])
console.log('Working. Next, in another terminal: npx tsx spool-to-bullmq.mts')

await stopping
// While Redis is down, `close` would wait for it. A job in flight then comes again, to another worker.
await Promise.race([worker.close(), sleep(10_000)])
connection.disconnect()
console.log('Stopped. What the queue still holds waits for the next start of spool-to-bullmq-worker.mts')
process.exit()
