/**
 * A Redis node that falls silent: it accepts connections, keeps its sockets, and answers nothing. Sentinel promotes its
 * replica; the clients must leave the silent node by themselves.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { redisStore } from 'notification-subscriber/redis'
import { expect, test } from 'vitest'
import { freePort } from '../../support/listen.js'
import { RedisServer } from '../../support/redis-server.js'
import { RunningProgram } from '../../support/running-program.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const reconnectOnError = ({ message }: Error) => message.startsWith('READONLY')
// As in docs/stores.md, examples/spool-to-bullmq.mts and examples/spool-to-bullmq-worker.mts.
const storeOptions = { commandTimeout: 1_000, socketTimeout: 5_000, reconnectOnError }
const queueOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  socketTimeout: 5_000,
  reconnectOnError,
}
const workerOptions = { maxRetriesPerRequest: null, socketTimeout: 15_000, reconnectOnError }

/** A sentinel that promotes the replica of a primary that is silent for a second. */
async function startSentinel(primary: RedisServer, replica: RedisServer, folder: string) {
  const port = await freePort()
  const lines = [
    ...['bind 127.0.0.1', `port ${port}`, `dir ${folder}`],
    `sentinel monitor app 127.0.0.1 ${primary.port} 1`,
    ...['sentinel down-after-milliseconds app 1000', 'sentinel failover-timeout app 4000'],
  ]
  await writeFile(join(folder, 'sentinel.conf'), lines.join('\n'))
  const sentinel = new RunningProgram(['sentinel.conf', '--sentinel'], { command: 'redis-server', folder })
  const asking = new Redis(port)
  const clients = [asking.on('error', () => {})]
  const replicas = () => asking.call('SENTINEL', 'REPLICAS', 'app').catch(() => [])
  while (!JSON.stringify(await replicas()).includes(String(replica.port))) await sleep(100)
  // It promotes a replica that it has heard from.
  await sleep(1_500)
  return {
    client(options: typeof storeOptions | typeof queueOptions | typeof workerOptions): Redis {
      const redis = new Redis({ ...options, sentinels: [{ host: '127.0.0.1', port }], name: 'app' })
      clients.push(redis.on('error', () => {}))
      return redis
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const client of clients) client.disconnect()
      await sentinel[Symbol.asyncDispose]()
    },
  }
}

/** Repeats what may fail, as the keeper and the spool do. */
async function untilDone<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work()
    } catch {
      await sleep(200)
    }
  }
}

test('store, BullMQ producer and BullMQ worker continue on the promoted replica', async () => {
  await using primary = await RedisServer.start()
  await using replica = await RedisServer.start({ replicaOf: primary.port })
  await using folder = await temporaryFolder()
  await using sentinel = await startSentinel(primary, replica, folder.path)
  const store = redisStore(sentinel.client(storeOptions))
  const queue = new Queue('work', { connection: sentinel.client(queueOptions) })
  queue.on('error', () => {})
  const done: string[] = []
  const worker = new Worker('work', async ({ name }) => void done.push(name), {
    connection: sentinel.client(workerOptions),
  })
  worker.on('error', () => {})
  await worker.waitUntilReady()
  await untilDone(async () => {
    await store.set('key', 'before')
    await queue.add('before', {})
  })
  while (!done.includes('before')) await sleep(50)

  primary.stop()
  const stored = untilDone(async () => {
    await store.set('key', 'after')
    return store.get('key')
  })
  const added = untilDone(() => queue.add('after', {}))
  expect(await stored).toBe('after')
  await added
  while (!done.includes('after')) await sleep(50)
  primary.resume()
  await Promise.race([Promise.all([worker.close(), queue.close()]), sleep(5_000)])
}, 60_000)

test('every ioredis client of the pages and examples leaves a silent node', async () => {
  const root = new URL('../../../', import.meta.url).pathname
  let clients = 0
  for (const folder of ['docs', 'examples']) {
    for (const name of await readdir(join(root, folder))) {
      if (!/\.(md|mts)$/.test(name)) continue
      const [, ...made] = (await readFile(join(root, folder, name), 'utf8')).split('new Redis(')
      clients += made.length
      // Or finds out whether Redis runs.
      for (const each of made)
        expect(each.slice(0, 300), name).toMatch(/socketTimeout|maxRetriesPerRequest: 0 /)
    }
  }
  expect(clients).toBeGreaterThanOrEqual(5)
})
