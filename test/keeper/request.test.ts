/** What an error of the client means, and who tests a route. */
import { describe, expect, test } from 'vitest'
import {
  ApiError,
  ConfigurationError,
  ConnectionError,
  InvalidRequestError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  type SubscriptionRequestSummary,
  TimeoutError,
  TokenRequestError,
} from '../../src/errors.js'
import { Problems } from '../../src/keeper/reporter.js'
import { classify, KnownRoutes } from '../../src/keeper/request.js'
import type { PlannedRequest } from '../../src/keeper/rules/decide.js'

const create: PlannedRequest = { kind: 'create', spec: 'behavioral https://app.example.com/' }
const update: PlannedRequest = { kind: 'update', id: 1 }
const request: SubscriptionRequestSummary = {
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: '',
  recreateIfExists: false,
}
const at = { url: undefined, requestId: undefined, body: '' }

function late(phase: TimeoutError['phase']): TimeoutError {
  return new TimeoutError('', { timeoutMs: 1, phase })
}

function unreadable(status: number): ResponseValidationError {
  return new ResponseValidationError('', { ...at, status, issues: [] })
}

function api(status: number, intermediary?: string): ApiError {
  return new ApiError('', { ...at, status, intermediary })
}

describe('an error of the client', () => {
  test.each<[string, PlannedRequest, unknown, string, string]>([
    ['a create without an answer', create, new OutcomeUnknownError('', { request }), 'lost', 'unavailable'],
    ['no connection', update, new ConnectionError('', { requestSent: false }), 'refused', 'unavailable'],
    ['no answer in time to an update', update, late('answer'), 'lost', 'unavailable'],
    ['no token in time', create, late('token'), 'refused', 'unavailable'],
    ['a 500', update, api(500), 'lost', 'unavailable'],
    ['a 501', create, api(501), 'refused', 'unavailable'],
    ['an answer of a proxy', update, unreadable(200), 'lost', 'unavailable'],
    ['a 503', update, api(503), 'lost', 'unavailable'],
    ['a 429', update, api(429), 'refused', 'unavailable'],
    ['a 409 of a proxy', create, api(409, 'nginx'), 'refused', 'unavailable'],
    ['a 405 of a proxy', update, api(405, 'nginx'), 'refused', 'unavailable'],
    ['a 403 of a proxy', create, api(403, 'nginx'), 'refused', 'unavailable'],
    [
      'a 401 of a proxy before the token endpoint',
      create,
      new TokenRequestError('', { status: 401, intermediary: 'Kong' }),
      'refused',
      'unavailable',
    ],
    ['a 401', update, api(401), 'refused', 'credentials'],
    ['a 403', create, api(403), 'refused', 'credentials'],
    ['a 422', create, api(422), 'refused', 'refused'],
    ['a refused token', create, new TokenRequestError('', { status: 401 }), 'refused', 'credentials'],
    [
      'a token endpoint that fails',
      create,
      new TokenRequestError('', { status: 500 }),
      'refused',
      'unavailable',
    ],
    [
      'a token endpoint that says so with 400',
      create,
      new TokenRequestError('', { status: 400, error: 'server_error' }),
      'refused',
      'unavailable',
    ],
    ['a name that cannot be sent', create, new InvalidRequestError('', { issues: [] }), 'refused', 'invalid'],
    ['a proxy that cannot be', create, new ConfigurationError('', { issues: [] }), 'refused', 'unavailable'],
    ['an error of the user’s own client', create, new Error('?'), 'lost', 'unavailable'],
  ])('%s', (_name, call, error, kind, failureKind) => {
    expect(classify(call, error)).toMatchObject({ kind: failureKind, isLost: kind === 'lost', error })
  })

  test('409 to a create and 404 to another call are answers', () => {
    const reason = 'partial-overlap'
    const conflict = new SubscriptionConflictError('', { ...at, status: 409, reason, request })
    const notFound = { ...at, status: 404, subscriptionId: 1 }
    const missing = new SubscriptionNotFoundError('', { ...notFound, provesEnded: false })
    const ended = new SubscriptionNotFoundError('', { ...notFound, provesEnded: true })
    const kindOf = (call: PlannedRequest, error: unknown) => classify(call, error).kind
    expect(kindOf(create, conflict)).toBe('conflict')
    expect(kindOf(update, missing)).toBe('not-found')
    expect(kindOf(update, ended)).toBe('gone')
    expect(kindOf(create, unreadable(201))).toBe('unreadable')
    expect(classify(create, missing)).toMatchObject({ kind: 'refused', isLost: false })
  })

  test.each([300, 302, 399, 405, 501])('%i to an update says that there is no such route', (status) => {
    expect(classify(update, api(status))).toEqual({ kind: 'no-route', error: api(status) })
  })

  test.each([299, 400, 404])('%i says that it is refused', (status) => {
    expect(classify(update, api(status))).toEqual({ kind: 'unclear', error: api(status) })
  })
})

test('two users who test a route each, and then need that of the other, do not wait for each other', async () => {
  const routes = new KnownRoutes(new Problems(() => {}))
  await Promise.all([routes.begin('update', 'alice'), routes.begin('unsubscribe', 'bob')])
  const alice = routes.begin('unsubscribe', 'alice')
  expect(await routes.begin('update', 'bob')).toBe(false)
  routes.end('bob')
  expect(await alice).toBe(true)
})
