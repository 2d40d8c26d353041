import { inspect } from 'node:util'
import * as sdk from 'notification-subscriber'
import { describe, expect, test, vi } from 'vitest'

// Loaded here and not in the test: what is loaded in a test is taken for covered by it alone (test/mutation).
vi.resetModules()
const copy = await import('notification-subscriber')

const request = {
  notificationTypes: ['behavioral'],
  usernames: ['a'],
  callbackUrl: 'https://x',
  recreateIfExists: false,
}

const every = [
  new sdk.ConfigurationError('m', { issues: [] }),
  new sdk.InvalidRequestError('m', { issues: [] }),
  new sdk.ClosedError('m'),
  new sdk.TokenRequestError('m', { status: 401 }),
  new sdk.ApiError('m', { status: 500, body: '' }),
  new sdk.SubscriptionConflictError('m', { status: 409, body: '', reason: 'partial-overlap', request }),
  new sdk.SubscriptionNotFoundError('m', { status: 404, body: '', subscriptionId: 1, provesEnded: true }),
  new sdk.ConnectionError('m', { requestSent: true }),
  new sdk.TimeoutError('m', { timeoutMs: 1, phase: 'answer' }),
  new sdk.OutcomeUnknownError('m', { request }),
  new sdk.ResponseValidationError('m', { status: 200, body: '', issues: [] }),
  new sdk.InvalidDeliveryError('m', { issues: [], body: 'raw' }),
  new sdk.SpoolError('m', { reason: 'full' }),
]

describe('one hierarchy', () => {
  test('every error is an Error and a NotificationError with a code and a name of its own', () => {
    for (const error of every) {
      expect(error).toBeInstanceOf(Error)
      expect(error).toBeInstanceOf(sdk.NotificationError)
      expect(error.name).toBe(error.constructor.name)
      expect(String(error.stack)).toContain(error.name)
    }
    expect(every.map(({ code }) => code)).toEqual([
      'CONFIGURATION',
      'INVALID_REQUEST',
      'CLOSED',
      'TOKEN_REQUEST',
      'API',
      'SUBSCRIPTION_CONFLICT',
      'SUBSCRIPTION_NOT_FOUND',
      'CONNECTION',
      'TIMEOUT',
      'OUTCOME_UNKNOWN',
      'RESPONSE_VALIDATION',
      'INVALID_DELIVERY',
      'SPOOL',
    ])
  })

  test('each is an instance of its own class and its parents only', () => {
    const classes = Object.values(sdk).filter(
      (value): value is typeof sdk.ApiError =>
        typeof value === 'function' && value.prototype instanceof Error,
    )
    expect(classes).toHaveLength(every.length + 1)
    for (const error of every) {
      const parents = classes.filter((candidate) =>
        Object.prototype.isPrototypeOf.call(candidate.prototype, error),
      )
      expect(classes.filter((candidate) => error instanceof candidate)).toEqual(parents)
    }
  })

  test('only an error of this package is an instance', () => {
    const impostors = [{ nsErrorName: 'ApiError' }, undefined, 7].map((each) =>
      Object.create({ constructor: each }),
    )
    const others = [undefined, null, 'text', {}, new Error('x'), Object.create(null), () => {}]
    for (const value of [...others, ...impostors]) {
      for (const Class of [sdk.NotificationError, sdk.ApiError]) expect(value instanceof Class).toBe(false)
    }
  })

  test('instances from another loaded copy of the package are instances', () => {
    expect(copy.ApiError).not.toBe(sdk.ApiError)
    const foreign = new copy.SubscriptionNotFoundError('m', {
      status: 404,
      body: '',
      subscriptionId: 1,
      provesEnded: true,
    })
    expect(foreign).toBeInstanceOf(sdk.SubscriptionNotFoundError)
    expect(foreign).toBeInstanceOf(sdk.ApiError)
    expect(foreign).toBeInstanceOf(sdk.NotificationError)
    expect(foreign).not.toBeInstanceOf(sdk.ConnectionError)
  })

  test("a class that a user derives matches only the user's own instances", () => {
    class AppError extends sdk.ApiError {}
    const own = new AppError('m', { status: 400, body: '' })
    expect(own).toBeInstanceOf(AppError)
    expect(own).toBeInstanceOf(sdk.ApiError)
    expect(new sdk.ApiError('m', { status: 400, body: '' })).not.toBeInstanceOf(AppError)
  })
})

test('each has the fields that it was made with, and its cause', () => {
  const cause = new Error('why')
  const answered = { status: 409, url: 'https://x.example/y', requestId: 'r', body: 'raw', retryAfterMs: 5 }
  const conflict = { ...answered, reason: 'partial-overlap', request } as const
  expect({ ...new sdk.SubscriptionConflictError('m', conflict) }).toMatchObject(conflict)
  expect(new sdk.TimeoutError('m', { timeoutMs: 6, phase: 'token' }, { cause })).toMatchObject({ cause })
  expect(new sdk.ClosedError('m', { cause })).toMatchObject({ message: 'm', cause })
})

test('the name is right also if a minifier renamed the class, and can be set as on any error', () => {
  const error = new sdk.TimeoutError('m', { timeoutMs: 1, phase: 'answer' })
  expect(Object.keys(error)).not.toContain('name')
  error.name = 'Mine'
  expect(error.name).toBe('Mine')
  expect(Reflect.deleteProperty(error, 'name')).toBe(true)
})

test.each<[unknown, string]>([
  ['{"a":', '{"a":'],
  [new TextEncoder().encode('größer ☎'), 'größer ☎'],
  [new DataView(new Uint8Array([123, 125]).buffer), '{}'],
  [new Uint8Array([123, 0xff, 125]), '{\uFFFD}'],
  [{ a: [1] }, '{"a":[1]}'],
  [null, 'null'],
  [undefined, ''],
  [10n, ''],
])('the bodyText of an InvalidDeliveryError about %o is %j', (body, text) => {
  expect(new sdk.InvalidDeliveryError('m', { issues: [], body }).bodyText).toBe(text)
})

test('an InvalidDeliveryError has its body, which is not printed or serialized', () => {
  const error = new sdk.InvalidDeliveryError('m', { issues: [], body: 'raw-body' })
  expect(error.body).toBe('raw-body')
  expect(inspect(error)).not.toContain('raw-body')
  expect(JSON.stringify(error)).not.toContain('raw-body')
})
