/**
 * Does the work that `spool-to-bullmq.ts` puts into the queue; run as many as you like.
 *
 *   REDIS_URL=redis://127.0.0.1:6379 npx tsx examples/spool-to-bullmq-worker.ts
 */
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { Delivery } from 'notification-subscriber/webhooks'

const { REDIS_URL } = process.env
if (!REDIS_URL)
  throw new Error('REDIS_URL is missing: set it to the address of your Redis, redis://host:port')

/** The work. It may come twice for the same notification, if a worker dies between doing it and saying so. */
async function work({ notification }: Delivery): Promise<void> {
  console.log(`Done: ${notification.id}`)
}

// A worker waits for Redis for as long as that is away, which is what this setting says.
const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null })
connection.on('error', ({ message }) => console.error(`Redis: ${message}`))

const worker = new Worker<Delivery>('notifications', (job) => work(job.data), {
  connection,
  concurrency: 8,
  // How long the jobs of a worker that died wait until another one takes them.
  lockDuration: 10_000,
  stalledInterval: 5_000,
  // How often a job may lose its worker until it counts as failed: every restart costs one.
  maxStalledCount: 100,
})
worker.on('error', ({ message }) => console.error(`Worker: ${message}`))
await worker.waitUntilReady()
console.log('Working')

process.once('SIGTERM', async () => {
  await worker.close()
  connection.disconnect()
})
