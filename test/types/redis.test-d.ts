import type { Cluster, Redis } from 'ioredis'
import type { redisStore } from 'notification-subscriber/redis'
import type { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { expectTypeOf, test } from 'vitest'

type RedisClient = Parameters<typeof redisStore>[0]

test('redisStore takes every kind of client of ioredis', () => {
  expectTypeOf<Redis>().toExtend<RedisClient>()
  expectTypeOf<Cluster>().toExtend<RedisClient>()
})

test('redisStore takes every kind of client of node-redis', () => {
  expectTypeOf<ReturnType<typeof createClient>>().toExtend<RedisClient>()
  expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<RedisClient>()
  expectTypeOf<ReturnType<typeof createCluster>>().toExtend<RedisClient>()
  expectTypeOf<ReturnType<typeof createSentinel>>().toExtend<RedisClient>()
})

test('redisStore takes no other client', () => {
  expectTypeOf<string>().not.toExtend<RedisClient>()
  expectTypeOf<Map<string, string>>().not.toExtend<RedisClient>()
})
