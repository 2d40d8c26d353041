import KeyvRedis from '@keyv/redis'
import { Redis } from 'ioredis'
import Keyv from 'keyv'
import type { KeyValueStore } from 'notification-subscriber'
import { type RedisStore, redisStore } from 'notification-subscriber/redis'
import { createClient } from 'redis'
import { afterAll, describe, expect, test } from 'vitest'
import {
  describeCompareAndSet,
  describeKeyValueStore,
  newKey,
} from '../../support/key-value-store-conformance.js'
import { RedisServer } from '../../support/redis-server.js'

/** Opened and closed as docs/stores.md says. */
interface OpenStore<Store extends KeyValueStore = KeyValueStore> {
  readonly store: Store
  close(): Promise<void> | void
}

function ioredisOn(url: string): OpenStore<RedisStore> {
  const redis = new Redis(url, { commandTimeout: 1_000 })
  return { store: redisStore(redis), close: () => redis.disconnect() }
}

function nodeRedisOn(url: string): OpenStore<RedisStore> {
  const redis = createClient({ url })
  void redis.connect()
  return { store: redisStore(redis), close: () => redis.destroy() }
}

function keyvOn(url: string): OpenStore {
  const adapter = new KeyvRedis({ url, disableOfflineQueue: true })
  const keyv = new Keyv<string>(adapter)
  return { store: keyv, close: () => adapter.disconnect(true) }
}

const server = await RedisServer.start()
afterAll(() => server[Symbol.asyncDispose]())

describe.each([
  ['ioredis', ioredisOn],
  ['node-redis', nodeRedisOn],
])('redisStore on %s', (library, open) => {
  const first = open(server.url)
  const others = Array.from({ length: 7 }, () => open(server.url))
  afterAll(async () => {
    for (const { close } of [first, ...others]) await close()
  })

  describeKeyValueStore(library, () => first.store)
  describeCompareAndSet(library, () => [first.store, ...others.map(({ store }) => store)])
})

describe('@keyv/redis', () => {
  const opened = keyvOn(server.url)
  afterAll(() => opened.close())
  describeKeyValueStore('Keyv on Redis', () => opened.store)
})

describe('a prefix', () => {
  test('keeps apart what shares a database, and is what Redis shows', async () => {
    const redis = new Redis(server.url)
    const key = newKey()
    const [one, two] = [redisStore(redis, { prefix: 'one:' }), redisStore(redis, { prefix: 'two:' })]
    await one.set(key, 'of one')
    expect(await two.get(key)).toBeUndefined()
    expect(await two.compareAndSet(key, undefined, 'of two')).toBe(true)
    expect(await two.compareAndSet(key, 'of two', 'still of two')).toBe(true)
    await one.delete(key)
    expect(await two.get(key)).toBe('still of two')
    expect(await redis.get(`two:${key}`)).toBe('still of two')
    await redis.quit()
  })

  test("of ioredis' own applies to all four methods", async () => {
    const redis = new Redis(server.url, { keyPrefix: 'own:' })
    const plain = new Redis(server.url)
    const key = newKey()
    const store = redisStore(redis)
    expect(await store.compareAndSet(key, undefined, 'first')).toBe(true)
    expect(await store.compareAndSet(key, 'first', 'second')).toBe(true)
    expect(await plain.get(`own:${key}`)).toBe('second')
    await store.delete(key)
    expect(await plain.exists(`own:${key}`)).toBe(0)
    await Promise.all([redis.quit(), plain.quit()])
  })
})

test('a store serves both libraries at once: what one wrote, the other compares with', async () => {
  const redis = new Redis(server.url)
  const client = await createClient({ url: server.url }).connect()
  const key = newKey()
  const [one, two] = [redisStore(redis), redisStore(client)]
  expect(await one.compareAndSet(key, undefined, 'first')).toBe(true)
  expect(await two.compareAndSet(key, undefined, 'second')).toBe(false)
  expect(await two.compareAndSet(key, 'first', 'second')).toBe(true)
  expect(await one.get(key)).toBe('second')
  await redis.quit()
  await client.close()
})

test('an operation that Redis refuses rejects', async () => {
  const redis = new Redis(server.url)
  const store = redisStore(redis)
  const key = newKey()
  await redis.lpush(key, 'a list')
  await expect(store.get(key)).rejects.toThrow('WRONGTYPE')
  await expect(store.compareAndSet(key, 'text', 'other')).rejects.toThrow('WRONGTYPE')
  await expect(store.set(newKey(), 'text', 0.5)).rejects.toThrow('not an integer')
  await redis.quit()
})
