import { expectTypeOf, test } from 'vitest'
import {
  ApiError,
  NotificationError,
  SubscriptionConflictError,
  type SubscriptionRequestSummary,
} from '../../src/errors.js'

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
    case 'TIMEOUT':
      expectTypeOf(error.timeoutMs).toBeNumber()
      break
  }
})

test('instanceof a single class narrows to that class', () => {
  const error: unknown = undefined
  if (error instanceof SubscriptionConflictError)
    expectTypeOf(error).toEqualTypeOf<SubscriptionConflictError>()
  if (error instanceof ApiError) {
    expectTypeOf(error).toEqualTypeOf<ApiError>()
    expectTypeOf(error.code).toEqualTypeOf<'API' | 'SUBSCRIPTION_CONFLICT' | 'SUBSCRIPTION_NOT_FOUND'>()
  }
})
