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
import { classify, isPassing } from '../../src/keeper/call.js'
import type { Call } from '../../src/keeper/decide.js'

const create: Call = { kind: 'create', key: '' }
const update: Call = { kind: 'update', key: '', id: 1 }
const request: SubscriptionRequestSummary = {
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: '',
  recreateIfExists: false,
}
const at = { url: undefined, requestId: undefined, body: '' }

function api(status: number): ApiError {
  return new ApiError('', { ...at, status })
}

describe('an error of the client', () => {
  test.each<[string, Call, unknown, string, string]>([
    ['a create without an answer', create, new OutcomeUnknownError('', { request }), 'lost', 'SERVICE'],
    [
      'a 201 without an id',
      create,
      new ResponseValidationError('', { ...at, status: 201, issues: [] }),
      'lost',
      'SERVICE',
    ],
    ['a connection that broke', update, new ConnectionError('', { requestSent: true }), 'lost', 'SERVICE'],
    ['no connection', update, new ConnectionError('', { requestSent: false }), 'refused', 'SERVICE'],
    [
      'no answer in time to an update',
      update,
      new TimeoutError('', { timeoutMs: 1, phase: 'answer' }),
      'lost',
      'SERVICE',
    ],
    [
      'no token in time',
      update,
      new TimeoutError('', { timeoutMs: 1, phase: 'token' }),
      'refused',
      'SERVICE',
    ],
    [
      'no answer in time to a create that was not sent',
      create,
      new TimeoutError('', { timeoutMs: 1, phase: 'answer' }),
      'refused',
      'SERVICE',
    ],
    ['a 500', update, api(500), 'lost', 'SERVICE'],
    ['a 502', update, api(502), 'lost', 'SERVICE'],
    ['a 504', update, api(504), 'lost', 'SERVICE'],
    ['a 520 of a proxy', update, api(520), 'lost', 'SERVICE'],
    ['a 501', update, api(501), 'refused', 'SERVICE'],
    ['a 503', update, api(503), 'refused', 'SERVICE'],
    ['a 429', update, api(429), 'refused', 'SERVICE'],
    ['a 401', update, api(401), 'refused', 'CREDENTIALS'],
    ['a 403', create, api(403), 'refused', 'CREDENTIALS'],
    ['a 422', create, api(422), 'refused', 'REFUSED'],
    ['a refused token', create, new TokenRequestError('', { status: 401 }), 'refused', 'CREDENTIALS'],
    ['a token endpoint that fails', create, new TokenRequestError('', { status: 500 }), 'refused', 'SERVICE'],
    ['a name that cannot be sent', create, new InvalidRequestError('', { issues: [] }), 'refused', 'INVALID'],
    ['an option that cannot be', create, new ConfigurationError('', { issues: [] }), 'refused', 'INVALID'],
    ['an error of somebody’s own client', create, new Error('?'), 'lost', 'SERVICE'],
  ])('%s', (_name, call, error, kind, failureKind) => {
    expect(classify(call, error)).toMatchObject({ kind, failure: { kind: failureKind, error } })
  })

  test('409 to a create and 404 to another call are answers', () => {
    const conflict = new SubscriptionConflictError('', {
      ...at,
      status: 409,
      reason: 'partial-overlap',
      request,
    })
    const missing = new SubscriptionNotFoundError('', { ...at, status: 404, subscriptionId: 1 })
    expect(classify(create, conflict)).toEqual({ kind: 'answered', answer: { kind: 'conflict' } })
    expect(classify(update, missing)).toEqual({ kind: 'answered', answer: { kind: 'not-found' } })
    expect(classify(create, missing)).toMatchObject({ kind: 'refused' })
  })

  test('passes by itself if the service or the store failed, and not if something is wrong', () => {
    expect(isPassing({ kind: 'SERVICE', error: api(503) })).toBe(true)
    expect(isPassing({ kind: 'STORE', error: new Error() })).toBe(true)
    expect(isPassing({ kind: 'SERVICE', error: new Error('a bug') })).toBe(false)
    expect(isPassing({ kind: 'REFUSED', error: api(422) })).toBe(false)
  })
})
