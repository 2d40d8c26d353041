import type { Redis } from 'ioredis'
import type { Keyv } from 'keyv'
import {
  type CallOptions,
  type CreateSubscriptionInput,
  type CreateSubscriptionResult,
  DeliveryReceiver,
  type KeyValueStore,
  type NotificationClient,
  type UpdateSubscriptionParametersInput,
} from 'notification-subscriber'
import {
  type KeeperClient,
  SubscriptionKeeper,
  type SubscriptionKeeperOptions,
} from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'
import * as webhooks from 'notification-subscriber/webhooks'
import { describe, expectTypeOf, test } from 'vitest'
import * as z from 'zod'

declare const client: NotificationClient
declare const redis: Redis
declare const keyv: Keyv

const required = {
  client,
  name: 'coaching',
  store: new Map<string, string>(),
  usernames: ['alice'],
  notificationTypes: ['behavioral' as const],
  callbackUrl: 'https://app.example.com/',
} satisfies SubscriptionKeeperOptions

type Options = SubscriptionKeeperOptions

describe('the options of a keeper', () => {
  test('take a roster as a list that is not to be changed, or as a function, async or not', () => {
    const names = ['alice', 'bob'] as const
    expectTypeOf(names).toExtend<Options['usernames']>()
    expectTypeOf<string[]>().toExtend<Options['usernames']>()
    expectTypeOf<() => readonly string[]>().toExtend<Options['usernames']>()
    expectTypeOf<() => Promise<string[]>>().toExtend<Options['usernames']>()
    expectTypeOf<string>().not.toExtend<Options['usernames']>()
    expectTypeOf<Set<string>>().not.toExtend<Options['usernames']>()
    expectTypeOf<() => Promise<number[]>>().not.toExtend<Options['usernames']>()
  })

  test('take undefined for what has a default', () => {
    type Optional = Exclude<keyof Options, keyof typeof required>
    expectTypeOf<typeof required & Record<Optional, undefined>>().toExtend<Options>()
    expectTypeOf<false>().toExtend<Options['logger']>()
    expectTypeOf<Console>().toExtend<Options['logger']>()
    expectTypeOf<'ignore'>().not.toExtend<Options['existing']>()
  })
})

test('the client of a keeper is a NotificationClient, or any object with three methods of it', () => {
  expectTypeOf<NotificationClient>().toExtend<KeeperClient>()
  const own = {
    async tryCreateSubscription(
      _input: CreateSubscriptionInput,
      _options?: CallOptions,
    ): Promise<CreateSubscriptionResult> {
      return { created: true, subscriptionId: 1 }
    },
    async unsubscribe(_subscriptionId: number) {},
    async updateSubscriptionParameters(_subscriptionId: number, _input: UpdateSubscriptionParametersInput) {},
  }
  expectTypeOf(own).toExtend<KeeperClient>()
})

test('the store of a keeper is a Map of texts, a Keyv, a store on Redis, or anything with three methods', () => {
  expectTypeOf<Map<string, string>>().toExtend<Options['store']>()
  expectTypeOf(keyv).toExtend<Options['store']>()
  expectTypeOf(redisStore(redis)).toExtend<Options['store']>()
  expectTypeOf<Pick<KeyValueStore, 'get' | 'set' | 'delete'>>().toExtend<Options['store']>()
  expectTypeOf<Pick<KeyValueStore, 'get' | 'set'>>().not.toExtend<Options['store']>()
  expectTypeOf<Map<number, string>>().not.toExtend<Options['store']>()
})

describe('a keeper', () => {
  const keeper = new SubscriptionKeeper(required)

  test('observes what any receiver delivers, from both entry points, also with the user’s schemas', () => {
    const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }
    new DeliveryReceiver({ secrets: { token: 'a' } }).onAny(keeper.observe)
    new DeliveryReceiver({ secrets: { token: 'a' }, payloads }).onAny(keeper.observe)
    new webhooks.DeliveryReceiver({ allowUnauthenticated: true }).onAny(keeper.observe)
    expectTypeOf<{ subscriptionId: number }>().toExtend<Parameters<typeof keeper.observe>[1]>()
    expectTypeOf<{ subscriptionId: string }>().not.toExtend<Parameters<typeof keeper.observe>[1]>()
  })
})
