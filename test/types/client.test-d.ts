import type {
  CreateSubscriptionInput,
  createSubscriptionInputSchema,
  NotificationClient,
  NotificationClientOptions,
  SubscriptionConflictError,
} from 'notification-subscriber'
import type { Agent } from 'undici'
import { expectTypeOf, test } from 'vitest'
import type { z } from 'zod'

declare const client: NotificationClient

test('the input type', () => {
  const input = { notificationTypes: ['behavioral'], usernames: ['alice'], callbackUrl: 'https://x' } as const
  expectTypeOf(input).toExtend<CreateSubscriptionInput>()
  expectTypeOf({
    ...input,
    callbackUrl: new URL('https://x'),
    recreateIfExists: undefined,
  }).toExtend<CreateSubscriptionInput>()
  expectTypeOf({
    ...input,
    notificationTypes: ['lowEnergyAgentOpened'] as const,
  }).not.toExtend<CreateSubscriptionInput>()
  expectTypeOf({ ...input, parameters: { token: undefined } }).not.toExtend<CreateSubscriptionInput>()
  expectTypeOf({ ...input, usernames: 'alice' }).not.toExtend<CreateSubscriptionInput>()
  expectTypeOf<z.input<typeof createSubscriptionInputSchema>>().toEqualTypeOf<CreateSubscriptionInput>()
})

test('created discriminates the result of tryCreateSubscription', async () => {
  const result = await client.tryCreateSubscription({ notificationTypes: [], usernames: [], callbackUrl: '' })
  if (result.created) {
    expectTypeOf(result.subscriptionId).toBeNumber()
    expectTypeOf(result).not.toHaveProperty('conflict')
  } else {
    expectTypeOf(result.conflict).toEqualTypeOf<SubscriptionConflictError>()
  }
})

test('common objects fit the options as they are', () => {
  expectTypeOf<Agent>().toExtend<NonNullable<NotificationClientOptions['dispatcher']>>()
  expectTypeOf<typeof globalThis.fetch>().toExtend<NonNullable<NotificationClientOptions['fetch']>>()
  expectTypeOf<Console>().toExtend<NonNullable<NotificationClientOptions['logger']>>()
  expectTypeOf<NodeJS.ProcessEnv>().toExtend<NonNullable<Parameters<typeof NotificationClient.fromEnv>[1]>>()
})
