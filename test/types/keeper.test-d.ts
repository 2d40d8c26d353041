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
  type KeeperGap,
  type KeeperProblem,
  type KeeperStatus,
  type KeptSubscription,
  type RotationReport,
  SubscriptionKeeper,
  type SubscriptionKeeperOptions,
  type SweepProgress,
  type SweepReport,
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
  test('need client, name, store, users, types and callback URL', () => {
    expectTypeOf(required).toExtend<Options>()
    type Required = {
      [Name in keyof Options]: object extends Pick<Options, Name> ? never : Name
    }[keyof Options]
    expectTypeOf<NonNullable<Required>>().toEqualTypeOf<keyof typeof required>()
  })

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

  test('give callbacks their arguments, and callbacks may be async', () => {
    const options: Options = {
      ...required,
      onGap: async (gap) => {
        expectTypeOf(gap).toEqualTypeOf<KeeperGap>()
      },
      onProblem: (problem) => {
        expectTypeOf(problem).toEqualTypeOf<KeeperProblem>()
      },
    }
    expectTypeOf(options).toEqualTypeOf<Options>()
    expectTypeOf<KeeperGap['cause']>().toEqualTypeOf<'ended' | 'replaced' | 'changed'>()
    expectTypeOf<KeeperGap['lastProvenAt']>().toEqualTypeOf<number | undefined>()
    expectTypeOf<KeeperProblem['usernames']>().toEqualTypeOf<readonly string[] | undefined>()
  })
})

describe('the client of a keeper', () => {
  test('is a NotificationClient, or any object with three methods of it', () => {
    expectTypeOf<NotificationClient>().toExtend<KeeperClient>()
    const own = {
      async tryCreateSubscription(
        _input: CreateSubscriptionInput,
        _options?: CallOptions,
      ): Promise<CreateSubscriptionResult> {
        return { created: true, subscriptionId: 1 }
      },
      async unsubscribe(_subscriptionId: number) {},
      async updateSubscriptionParameters(
        _subscriptionId: number,
        _input: UpdateSubscriptionParametersInput,
      ) {},
    }
    expectTypeOf(own).toExtend<KeeperClient>()
  })
})

describe('the store of a keeper', () => {
  test('is a Map of texts, a Keyv, a store on Redis, or anything with three methods', () => {
    expectTypeOf<Map<string, string>>().toExtend<Options['store']>()
    expectTypeOf(keyv).toExtend<Options['store']>()
    expectTypeOf(redisStore(redis)).toExtend<Options['store']>()
    expectTypeOf<Pick<KeyValueStore, 'get' | 'set' | 'delete'>>().toExtend<Options['store']>()
    expectTypeOf<Pick<KeyValueStore, 'get' | 'set'>>().not.toExtend<Options['store']>()
    expectTypeOf<Map<number, string>>().not.toExtend<Options['store']>()
  })
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
    expectTypeOf(keeper.observe).returns.toEqualTypeOf<void>()
  })

  test('returns the results of a sweep, a rotation and unsubscribeAll', () => {
    expectTypeOf(keeper.sweep).returns.resolves.toEqualTypeOf<SweepReport>()
    expectTypeOf(keeper.unsubscribeAll).returns.resolves.toEqualTypeOf<SweepReport>()
    expectTypeOf(keeper.rotateParameters).returns.resolves.toEqualTypeOf<RotationReport>()
    expectTypeOf<SweepReport['failed'][number]>().toEqualTypeOf<{
      readonly username: string
      readonly error: unknown
    }>()
    expectTypeOf<SweepReport['created']>().toEqualTypeOf<number>()
    expectTypeOf<RotationReport>().toEqualTypeOf<{
      readonly confirmed: readonly string[]
      readonly pending: readonly string[]
    }>()
  })

  test('takes options of a sweep: only a sweep may allow removals', () => {
    const onProgress = (progress: SweepProgress) => expectTypeOf(progress.done).toEqualTypeOf<number>()
    const { signal } = new AbortController()
    expectTypeOf(keeper.sweep).toBeCallableWith({ allowRemovals: true, onProgress, signal })
    expectTypeOf(keeper.rotateParameters).toBeCallableWith(
      { parameters: { token: 'b' } },
      { onProgress, signal },
    )
    type Rotation = NonNullable<Parameters<typeof keeper.rotateParameters>[1]>
    type Goodbye = NonNullable<Parameters<typeof keeper.unsubscribeAll>[0]>
    expectTypeOf<Rotation>().not.toHaveProperty('allowRemovals')
    expectTypeOf<Goodbye>().not.toHaveProperty('allowRemovals')
  })

  test('shows its status, and `await using` stops it', () => {
    expectTypeOf(keeper.status()).toEqualTypeOf<KeeperStatus>()
    expectTypeOf(keeper.subscription('alice')).toEqualTypeOf<KeptSubscription | undefined>()
    expectTypeOf(keeper.subscriptions()).toEqualTypeOf<
      IterableIterator<{ readonly username: string } & KeptSubscription>
    >()
    expectTypeOf<KeeperStatus['counts']>().toEqualTypeOf<
      Readonly<Record<KeptSubscription['state'], number>>
    >()
    expectTypeOf(keeper).toExtend<AsyncDisposable>()
    expectTypeOf(keeper.start).returns.toEqualTypeOf<void>()
    expectTypeOf(keeper.stop).returns.resolves.toEqualTypeOf<void>()
  })
})
