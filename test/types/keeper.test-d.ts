import type { Cluster, Redis } from 'ioredis'
import type { Keyv } from 'keyv'
import { DeliveryReceiver, type KeyValueStore, type NotificationClient } from 'notification-subscriber'
import type {
  KeeperClient,
  SubscriptionKeeper,
  SubscriptionKeeperOptions,
} from 'notification-subscriber/keeper'
import type { RedisStore, redisStore } from 'notification-subscriber/redis'
import * as webhooks from 'notification-subscriber/webhooks'
import type { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { expectTypeOf, test } from 'vitest'
import * as z from 'zod'

type Options = SubscriptionKeeperOptions

test('the roster of a keeper is a list of names, or a function that gives one, async or not', () => {
  expectTypeOf<readonly string[]>().toExtend<Options['usernames']>()
  expectTypeOf<() => readonly string[]>().toExtend<Options['usernames']>()
  expectTypeOf<() => Promise<string[]>>().toExtend<Options['usernames']>()
  expectTypeOf<string>().not.toExtend<Options['usernames']>()
  expectTypeOf<Set<string>>().not.toExtend<Options['usernames']>()
  expectTypeOf<() => Promise<number[]>>().not.toExtend<Options['usernames']>()
})

test('the options of a keeper take undefined for what has a default', () => {
  type Required = 'client' | 'name' | 'store' | 'usernames' | 'notificationTypes' | 'callbackUrl'
  type Optional = Record<Exclude<keyof Options, Required>, undefined>
  expectTypeOf<Pick<Options, Required> & Optional>().toExtend<Options>()
  expectTypeOf<'ignore'>().not.toExtend<Options['existing']>()
  expectTypeOf<NotificationClient>().toExtend<KeeperClient>()
})

test('the store of a keeper is a Map of texts, a Keyv, a store on Redis, or anything with three methods', () => {
  expectTypeOf<Map<string, string>>().toExtend<Options['store']>()
  expectTypeOf<Keyv>().toExtend<Options['store']>()
  expectTypeOf<RedisStore>().toExtend<Options['store']>()
  expectTypeOf<Pick<KeyValueStore, 'get' | 'set' | 'delete'>>().toExtend<Options['store']>()
  expectTypeOf<Pick<KeyValueStore, 'get' | 'set'>>().not.toExtend<Options['store']>()
  expectTypeOf<Map<number, string>>().not.toExtend<Options['store']>()
})

test('redisStore takes every kind of client of ioredis and node-redis, and nothing else', () => {
  type RedisClient = Parameters<typeof redisStore>[0]
  expectTypeOf<Redis | Cluster>().toExtend<RedisClient>()
  expectTypeOf<ReturnType<typeof createClient>>().toExtend<RedisClient>()
  expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<RedisClient>()
  expectTypeOf<ReturnType<typeof createCluster>>().toExtend<RedisClient>()
  expectTypeOf<ReturnType<typeof createSentinel>>().toExtend<RedisClient>()
  expectTypeOf<string>().not.toExtend<RedisClient>()
  expectTypeOf<Map<string, string>>().not.toExtend<RedisClient>()
})

test('a keeper observes what any receiver delivers, from both entry points, also with the user’s schemas', () => {
  const keeper = {} as SubscriptionKeeper
  const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }
  new DeliveryReceiver({ secrets: { token: 'a' }, payloads }).onAny(keeper.observe)
  new webhooks.DeliveryReceiver({ allowUnauthenticated: true }).onAny(keeper.observe)
  expectTypeOf<{ subscriptionId: string }>().not.toExtend<Parameters<typeof keeper.observe>[1]>()
})
