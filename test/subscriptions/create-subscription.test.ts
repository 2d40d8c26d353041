import { inspect } from 'node:util'
import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import {
  ApiError,
  NotificationClient,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
} from 'notification-subscriber'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { baseUrl, credentials, subscription, tokenUrl } from '../support/fake-service.js'

const server = setupServer()
const seen: Request[] = []

beforeAll(() => server.listen({ onUnhandledRequest: 'error' }))
beforeEach(() => {
  seen.length = 0
  server.use(
    http.post(tokenUrl, () =>
      HttpResponse.json({ access_token: 'header.payload.sig', token_type: 'Bearer', expires_in: 3600 }),
    ),
  )
})
afterEach(() => server.resetHandlers())
afterAll(() => server.close())

const url = `${baseUrl}/api/subscriptions`
const client = (options: object = {}) =>
  new NotificationClient({ baseUrl, auth: credentials, fetch: globalThis.fetch, retry: false, ...options })

function answer(response: () => Response) {
  server.use(
    http.post(url, ({ request }) => {
      seen.push(request)
      return response()
    }),
  )
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('should have failed'),
    (reason: unknown) => reason,
  )

const secrets = { parameters: { token: 'callback-t0ken' }, headers: { UserData: 'user-d4ta' } }

describe('the request (interface 4.2)', () => {
  test('is a form POST with a Bearer token, lists joined by commas, parameters in the form and headers as headers', async () => {
    answer(() => HttpResponse.json({ subscription_id: 123 }, { status: 201 }))
    const created = await client().createSubscription({
      notificationTypes: ['behavioral', 'call-score'],
      usernames: ['alice', 'bob'],
      callbackUrl: 'https://app.example.com/notifications?a=b&c=d',
      recreateIfExists: true,
      parameters: { token: 'a b+c%&=', 'X-Region': 'eu' },
      headers: { UserData: 'myData' },
    })
    expect(created).toEqual({ subscriptionId: 123 })
    const [request] = seen
    expect(request?.method).toBe('POST')
    expect(request?.headers.get('authorization')).toBe('Bearer header.payload.sig')
    expect(request?.headers.get('content-type')).toBe('application/x-www-form-urlencoded')
    expect(request?.headers.get('userdata')).toBe('myData')
    expect(await request?.text()).toBe(
      'notification_type=behavioral%2Ccall-score&username=alice%2Cbob' +
        '&callback_url=https%3A%2F%2Fapp.example.com%2Fnotifications%3Fa%3Db%26c%3Dd' +
        '&recreateIfExists=true&token=a+b%2Bc%25%26%3D&X-Region=eu',
    )
  })

  test('says nothing about recreateIfExists unless asked to', async () => {
    answer(() => HttpResponse.json({ subscription_id: 1 }, { status: 201 }))
    await client().createSubscription(subscription)
    await client().createSubscription({ ...subscription, recreateIfExists: false })
    expect(await seen[0]?.text()).not.toContain('recreateIfExists')
    expect(await seen[1]?.text()).toContain('recreateIfExists=false')
  })

  test('goes to the path under baseUrl, with or without a slash at its end', async () => {
    for (const base of ['https://gateway.example.com/notify', 'https://gateway.example.com/notify/']) {
      const hits: string[] = []
      server.use(
        http.post('https://gateway.example.com/notify/api/subscriptions', ({ request }) => {
          hits.push(request.url)
          return HttpResponse.json({ subscription_id: 1 }, { status: 201 })
        }),
      )
      await client({ baseUrl: base }).createSubscription(subscription)
      expect(hits).toHaveLength(1)
    }
  })

  test('a URL object is a callback URL, too', async () => {
    answer(() => HttpResponse.json({ subscription_id: 1 }, { status: 201 }))
    await client().createSubscription({ ...subscription, callbackUrl: new URL('https://app.example.com/x') })
    expect(new URLSearchParams(await seen[0]?.text()).get('callback_url')).toBe('https://app.example.com/x')
  })
})

describe('409 Conflict (interface 3 and 7)', () => {
  beforeEach(() => answer(() => new HttpResponse('conflict', { status: 409 })))

  test('without recreateIfExists it is a duplicate or an overlap, and the message says how to go on', async () => {
    const error = await failure(client().createSubscription({ ...subscription, ...secrets }))
    expect(error).toBeInstanceOf(SubscriptionConflictError)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      code: 'SUBSCRIPTION_CONFLICT',
      status: 409,
      body: 'conflict',
      reason: 'duplicate-or-overlap',
      request: { ...subscription, recreateIfExists: false },
    })
    expect((error as Error).message).toContain('recreateIfExists: true')
  })

  test('with recreateIfExists it can only be a partial overlap', async () => {
    const error = await failure(
      client().createSubscription({ ...subscription, ...secrets, recreateIfExists: true }),
    )
    expect(error).toMatchObject({ reason: 'partial-overlap', request: { recreateIfExists: true } })
    expect((error as Error).message).toContain('Unsubscribe the existing subscription first')
  })

  test('tryCreateSubscription returns it instead', async () => {
    const result = await client().tryCreateSubscription(subscription)
    expect(result.created).toBe(false)
    if (!result.created) expect(result.conflict.reason).toBe('duplicate-or-overlap')
  })

  test('no parameter or header value, no token and no credential is anywhere in it', async () => {
    answer(
      () =>
        new HttpResponse('you sent callback-t0ken and user-d4ta with header.payload.sig', { status: 409 }),
    )
    const error = await failure(client().createSubscription({ ...subscription, ...secrets }))
    const shown = inspect(error, { depth: null, showHidden: true }) + JSON.stringify(error) + String(error)
    for (const secret of ['callback-t0ken', 'user-d4ta', 'header.payload.sig', credentials.clientSecret]) {
      expect(shown).not.toContain(secret)
    }
  })

  test('many usernames make no endless message, but all are in the error', async () => {
    const usernames = Array.from({ length: 500 }, (_, index) => `agent-${index}`)
    const error = await failure(client().createSubscription({ ...subscription, usernames }))
    expect((error as Error).message.length).toBeLessThan(600)
    expect(error).toMatchObject({ request: { usernames } })
  })
})

describe('other answers', () => {
  test('tryCreateSubscription returns the id of what it created', async () => {
    answer(() => HttpResponse.json({ subscription_id: 9 }, { status: 201 }))
    expect(await client().tryCreateSubscription(subscription)).toEqual({ created: true, subscriptionId: 9 })
  })

  test.each([
    ['an id beyond the safe integers', '{"subscription_id": 9007199254740993}'],
    ['an id that is a string', '{"subscription_id": "12345"}'],
    ['an id that is a fraction', '{"subscription_id": 1.5}'],
    ['no id', '{}'],
    ['HTML', '<html>'],
    ['truncated JSON', '{"subscription_id": 12'],
    ['nothing', ''],
  ])('201 with %s is refused, and keeps the raw body', async (_name, body) => {
    answer(() => new HttpResponse(body, { status: 201 }))
    const error = await failure(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({ code: 'RESPONSE_VALIDATION', status: 201, body })
    expect((error as Error).message).toContain('recreateIfExists: true')
  })

  test('the largest and smallest safe ids are ids', async () => {
    for (const id of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0]) {
      answer(() => HttpResponse.json({ subscription_id: id }, { status: 201 }))
      expect(await client().createSubscription(subscription)).toEqual({ subscriptionId: id })
    }
  })

  test('a body over 1 MiB is cut off and reported', async () => {
    answer(
      () =>
        new HttpResponse(`{"subscription_id": 1, "padding": "${'x'.repeat(3 * 1024 * 1024)}"}`, {
          status: 201,
        }),
    )
    const error = await failure(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect((error as ResponseValidationError).body).toHaveLength(1024 * 1024)
  })

  test.each([
    [400, 'error.body'],
    [401, 'credentials'],
    [403, 'permit'],
    [404, '`baseUrl`'],
    [302, 'Redirects are not followed'],
    [429, 'busy'],
    [503, 'busy'],
  ])('%i is an ApiError that says what to do', async (status, words) => {
    answer(() => new HttpResponse('the body', { status, headers: { location: 'https://other.example' } }))
    const error = await failure(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ code: 'API', status, body: 'the body' })
    expect((error as Error).message).toContain(words)
    expect(seen).toHaveLength(1)
  })

  test('Retry-After is read in seconds', async () => {
    answer(() => new HttpResponse('', { status: 429, headers: { 'retry-after': '7' } }))
    const error = await failure(client().createSubscription(subscription))
    expect(error).toMatchObject({ retryAfterMs: 7_000 })
    expect((error as Error).message).toContain('in 7 s')
  })

  test.each([500, 502, 504])('%i leaves the outcome unknown', async (status) => {
    answer(() => new HttpResponse('', { status }))
    const error = await failure(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(OutcomeUnknownError)
    expect(error).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: { status },
      request: { usernames: ['alice'] },
    })
    expect((error as Error).message).toContain('recreateIfExists: true')
  })

  test('a connection that breaks leaves the outcome unknown', async () => {
    answer(() => HttpResponse.error())
    const error = await failure(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(OutcomeUnknownError)
    expect(error).toMatchObject({ cause: { code: 'CONNECTION', requestSent: true } })
  })
})
