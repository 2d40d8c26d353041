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
    expect((error as Error).message).toBe(
      'An existing subscription covers behavioral for alice to https://app.example.com/notifications, ' +
        'wholly or in part. Nothing was created. ' +
        'If it is identical, set `recreateIfExists: true` to replace it and get its new id; ' +
        'if that is answered with 409 too, it overlaps only in part and must be unsubscribed first.',
    )
  })

  test('with recreateIfExists it can only be a partial overlap', async () => {
    const error = await failure(
      client().createSubscription({ ...subscription, ...secrets, recreateIfExists: true }),
    )
    expect(error).toMatchObject({ reason: 'partial-overlap', request: { recreateIfExists: true } })
    expect((error as Error).message).toBe(
      'An existing subscription covers part of behavioral for alice to https://app.example.com/notifications, ' +
        'and recreateIfExists replaces identical ones only. Nothing was created or deleted. ' +
        'Unsubscribe the existing subscription first, or ask only for the users ' +
        'and types that it does not cover, or use another callback URL.',
    )
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

  test.each([
    [['alice', 'bob', 'carol'], 'behavioral, call-score for alice, bob, carol to https'],
    [['alice', 'bob', 'carol', 'dave'], 'behavioral, call-score for alice, bob, carol and 1 more to https'],
  ])('%j are named as far as they are few', async (usernames, words) => {
    const error = await failure(
      client().createSubscription({
        ...subscription,
        notificationTypes: ['behavioral', 'call-score'],
        usernames,
      }),
    )
    expect((error as Error).message).toContain(words)
  })

  test('the error keeps what was asked for, even if the caller changes it meanwhile', async () => {
    const usernames = ['alice']
    const notificationTypes = ['behavioral' as const]
    const callbackUrl = new URL('https://app.example.com/one')
    const call = failure(client().createSubscription({ usernames, notificationTypes, callbackUrl }))
    usernames.push('bob')
    notificationTypes.pop()
    callbackUrl.pathname = '/two'
    expect(await call).toMatchObject({
      request: {
        usernames: ['alice'],
        notificationTypes: ['behavioral'],
        callbackUrl: 'https://app.example.com/one',
      },
    })
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
    expect((error as Error).message).toMatch(
      /^The service answered 201, but the body holds no usable subscription_id \(.+\)\. A subscription probably exists now: the body is in error\.body, and creating again with `recreateIfExists: true` replaces the subscription and returns its id\.$/,
    )
  })

  test('200 with a page is from something else than the service: check `baseUrl`', async () => {
    answer(() => new HttpResponse('<!doctype html><title>Sign in</title>', { status: 200 }))
    const error = await failure(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({
      status: 200,
      url,
      body: '<!doctype html><title>Sign in</title>',
      message:
        `Could not create the subscription: something answered 200 with a page at ${url}, ` +
        'perhaps a login or a proxy, and not the service. Check `baseUrl`, and the network in between.',
    })
  })

  test('200 with a page settles nothing for an attempt before whose answer was lost', async () => {
    let count = 0
    answer(() => new HttpResponse('<html>', { status: ++count === 1 ? 502 : 200 }))
    const wanted = { ...subscription, recreateIfExists: true }
    const error = await failure(client({ retry: { baseDelayMs: 0 } }).createSubscription(wanted))
    expect(error).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: { code: 'RESPONSE_VALIDATION', status: 200 },
    })
  })

  test.each([201, 400, 409, 503])(
    'an error about an answer of %i says which address answered',
    async (status) => {
      answer(() => new HttpResponse('no', { status }))
      expect(await failure(client().createSubscription(subscription))).toMatchObject({ status, url })
    },
  )

  test('a 201 without an id is reported as such, also when an answer before it was lost', async () => {
    let count = 0
    answer(() => new HttpResponse('<html>', { status: ++count === 1 ? 502 : 201 }))
    const retry = { baseDelayMs: 0 }
    const error = await failure(
      client({ retry }).createSubscription({ ...subscription, recreateIfExists: true }),
    )
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({ status: 201, body: '<html>' })
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
    expect(error).toMatchObject({ issues: [{ path: [], message: 'is incomplete or too long' }] })
  })

  test('a body of 1 MiB to the byte is read', async () => {
    const start = '{"subscription_id": 1, "padding": "'
    const padding = 'x'.repeat(1024 * 1024 - start.length - 2)
    answer(() => new HttpResponse(`${start}${padding}"}`, { status: 201 }))
    expect(await client().createSubscription(subscription)).toEqual({ subscriptionId: 1 })
  })

  test('each status is an ApiError that says what to do', async () => {
    const messages = []
    for (const status of [199, 300, 302, 399, 400, 401, 403, 404, 418, 429, 501, 503]) {
      const error = await failure(
        client({
          auth: { username: 'u', password: 'p' },
          fetch: async () => ({ status, text: async () => 'the body' }),
        }).createSubscription(subscription),
      )
      expect(error).toBeInstanceOf(ApiError)
      expect(error).toMatchObject({ code: 'API', status, body: 'the body' })
      messages.push((error as Error).message)
    }
    expect(messages).toMatchInlineSnapshot(`
      [
        "Could not create the subscription: the service answered 199. What it says about that is in error.body.",
        "Could not create the subscription: the service answered 300. Redirects are not followed: set \`baseUrl\` to the final address.",
        "Could not create the subscription: the service answered 302. Redirects are not followed: set \`baseUrl\` to the final address.",
        "Could not create the subscription: the service answered 399. Redirects are not followed: set \`baseUrl\` to the final address.",
        "Could not create the subscription: the service answered 400. What it says about that is in error.body.",
        "Could not create the subscription: the service answered 401. It does not accept the credentials: check \`auth\`, and that access was activated.",
        "Could not create the subscription: the service answered 403. The credentials are known but do not permit this: ask for access to be extended.",
        "Could not create the subscription: the service answered 404. Check \`baseUrl\`: there is no subscription service at that address.",
        "Could not create the subscription: the service answered 418. What it says about that is in error.body.",
        "Could not create the subscription: the service answered 429. It is busy: try again later.",
        "Could not create the subscription: the service answered 501. It failed: try again later.",
        "Could not create the subscription: the service answered 503. It is busy: try again later.",
      ]
    `)
  })

  test('Retry-After is read in seconds', async () => {
    answer(() => new HttpResponse('', { status: 429, headers: { 'retry-after': '7' } }))
    const error = await failure(client().createSubscription(subscription))
    expect(error).toMatchObject({ retryAfterMs: 7_000 })
    expect((error as Error).message).toBe(
      'Could not create the subscription: the service answered 429. It is busy: try again in 7 s.',
    )
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
    expect((error as Error).message).toBe(
      'The request to create the subscription was sent, but its answer was lost: the subscription may exist. ' +
        'Create it again with `recreateIfExists: true`: that replaces it if it exists, and returns the id either way. ' +
        `(Could not create the subscription: the service answered ${status}. It failed: try again later.)`,
    )
  })

  test('a connection that breaks leaves the outcome unknown', async () => {
    answer(() => HttpResponse.error())
    const callbackUrl = new URL('https://app.example.com/one')
    const call = failure(client().createSubscription({ ...subscription, callbackUrl }))
    // Of no effect: the error tells of what was asked for.
    callbackUrl.pathname = '/two'
    const error = await call
    expect(error).toBeInstanceOf(OutcomeUnknownError)
    expect(error).toMatchObject({
      cause: { code: 'CONNECTION', requestSent: true },
      request: { callbackUrl: 'https://app.example.com/one' },
    })
  })
})
