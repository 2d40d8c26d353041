import {
  type ApiError,
  type CreateSubscriptionInput,
  type createSubscriptionInputSchema,
  NotificationError,
  type SubscriptionConflictError,
  type SubscriptionRequestSummary,
} from 'notification-subscriber'
import { expectTypeOf, test } from 'vitest'
import type { z } from 'zod'

test('the input of a create takes documented types, a list of users, and no value that is missing', () => {
  const input = { notificationTypes: ['behavioral'], usernames: ['alice'], callbackUrl: 'https://x' } as const
  expectTypeOf({ ...input, recreateIfExists: undefined }).toExtend<CreateSubscriptionInput>()
  const delivered = { ...input, notificationTypes: ['lowEnergyAgentOpened'] as const }
  expectTypeOf(delivered).not.toExtend<CreateSubscriptionInput>()
  expectTypeOf({ ...input, parameters: { token: undefined } }).not.toExtend<CreateSubscriptionInput>()
  expectTypeOf({ ...input, usernames: 'alice' }).not.toExtend<CreateSubscriptionInput>()
  expectTypeOf<z.input<typeof createSubscriptionInputSchema>>().toEqualTypeOf<CreateSubscriptionInput>()
})

test('instanceof NotificationError, then a switch on code, narrows to the single class', () => {
  const error: unknown = undefined
  if (!(error instanceof NotificationError)) return
  switch (error.code) {
    case 'SUBSCRIPTION_CONFLICT':
      expectTypeOf(error).toEqualTypeOf<SubscriptionConflictError>()
      expectTypeOf(error.reason).toEqualTypeOf<'partial-overlap' | 'duplicate-or-overlap'>()
      break
    case 'API':
      expectTypeOf(error.status).toBeNumber()
      expectTypeOf(error).not.toHaveProperty('reason')
      break
    case 'OUTCOME_UNKNOWN':
      expectTypeOf(error.request).toEqualTypeOf<SubscriptionRequestSummary>()
      break
  }
  expectTypeOf<ApiError['code']>().toEqualTypeOf<'API' | 'SUBSCRIPTION_CONFLICT' | 'SUBSCRIPTION_NOT_FOUND'>()
})
