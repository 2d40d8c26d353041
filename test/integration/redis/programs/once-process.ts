/** Takes ids from a queue in Redis until it is killed: work for each, once. What it works on stands in a list of its own. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { once } from 'notification-subscriber/once'
import { redisStore } from 'notification-subscriber/redis'

const [url = '', name = '', claimMs = ''] = process.argv.slice(2)
const store = redisStore(new Redis(url), { prefix: 'test:' })

await Promise.all(Array.from({ length: 4 }, takeAll))

async function takeAll(): Promise<void> {
  const redis = new Redis(url)
  for (;;) {
    const id = await redis.blmove('queue', `taken:${name}`, 'LEFT', 'RIGHT', 0)
    if (id !== null) await workOn(id, redis)
  }
}

/** As a queue does: again, until it succeeds. */
async function workOn(id: string, redis: Redis): Promise<void> {
  try {
    await once(store, id, () => work(id, redis), { claimMs: Number(claimMs) })
    await redis.lrem(`taken:${name}`, 1, id)
  } catch {
    await sleep(20)
    await workOn(id, redis)
  }
}

/** Fails the first time for some. */
async function work(id: string, redis: Redis): Promise<void> {
  if (Number(id) % 50 === 0 && (await redis.sadd('failed', id)) === 1) throw new Error('no database')
  await redis.hincrby('done', id, 1)
}
