import {
  ApiError,
  type NotificationClient,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
} from 'notification-subscriber'
import { beforeEach, describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import { baseUrl, type FakeService, fakeService, subscription } from '../support/fake-service.js'

const url = `${baseUrl}/api/subscriptions`
const secret = 'correct-horse-battery'

let service: FakeService
beforeEach(() => {
  service = fakeService()
})

const client = (options: object = {}) => service.client({ retry: false, ...options })

function answer(response: () => Response) {
  service.onCall = response
}

describe('409 Conflict (interface 3 and 7)', () => {
  beforeEach(() => answer(() => new Response('conflict', { status: 409 })))

  test('without recreateIfExists it is a duplicate or an overlap, and the message says what to do next', async () => {
    const error = await failureOf(client().createSubscription(subscription))
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
        'If the existing one is identical, `recreateIfExists: true` replaces it and returns the new id. ' +
        'If that fails with 409, too, the existing one overlaps only in part: unsubscribe it first.',
    )
  })

  test('with recreateIfExists it can only be a partial overlap', async () => {
    const error = await failureOf(client().createSubscription({ ...subscription, recreateIfExists: true }))
    expect(error).toMatchObject({ reason: 'partial-overlap', request: { recreateIfExists: true } })
    expect((error as Error).message).toBe(
      'An existing subscription covers part of behavioral for alice to https://app.example.com/notifications, ' +
        'and `recreateIfExists` replaces only an identical one. Nothing was created or deleted. ' +
        'Unsubscribe the existing subscription first, or leave out the users and types that it covers, ' +
        'or use another callback URL.',
    )
  })

  test('tryCreateSubscription returns it instead', async () => {
    const result = await client().tryCreateSubscription(subscription)
    expect(result.created).toBe(false)
    if (!result.created) expect(result.conflict.reason).toBe('duplicate-or-overlap')
  })

  test('with many usernames the message is cut, but the error has all of them', async () => {
    const usernames = Array.from({ length: 500 }, (_, index) => `agent-${index}`)
    const error = await failureOf(client().createSubscription({ ...subscription, usernames }))
    expect((error as Error).message.length).toBeLessThan(600)
    expect(error).toMatchObject({ request: { usernames } })
  })

  test.each([
    [['alice', 'bob', 'carol'], 'behavioral, call-score for alice, bob, carol to https'],
    [['alice', 'bob', 'carol', 'dave'], 'behavioral, call-score for alice, bob, carol and 1 more to https'],
  ])('%j are named as far as they are few', async (usernames, words) => {
    const error = await failureOf(
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
    const callbackUrl = new URL('https://app.example.com/one?key=value')
    const call = failureOf(client().createSubscription({ usernames, notificationTypes, callbackUrl }))
    usernames.push('bob')
    notificationTypes.pop()
    callbackUrl.pathname = '/two'
    expect(await call).toMatchObject({
      request: {
        usernames: ['alice'],
        notificationTypes: ['behavioral'],
        callbackUrl: 'https://app.example.com/one?…',
      },
    })
  })
})

describe('other answers', () => {
  test('tryCreateSubscription returns the id of what it created', async () => {
    answer(() => Response.json({ subscription_id: 9 }, { status: 201 }))
    expect(await client().tryCreateSubscription(subscription)).toEqual({ created: true, subscriptionId: 9 })
  })

  test.each([
    ['an id beyond the safe integers', '{"subscription_id": 9007199254740993}'],
    ['an id that is text and no integer', '{"subscription_id": "12345x"}'],
    ['an id that is text beyond the safe integers', '{"subscription_id": "9007199254740993"}'],
    ['an id that is text with a zero in front', '{"subscription_id": "007"}'],
    ['an id that is a fraction', '{"subscription_id": 1.5}'],
    ['no id', '{}'],
    ['HTML', '<html>'],
    ['truncated JSON', '{"subscription_id": 12'],
    ['nothing', ''],
  ])('201 with %s is refused, and keeps the raw body', async (_name, body) => {
    answer(() => new Response(body, { status: 201 }))
    const error = await failureOf(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({ code: 'RESPONSE_VALIDATION', status: 201, body })
    expect((error as Error).message).toMatch(
      /^The service answered 201, but the body holds no usable subscription_id \(.+\)\. A subscription probably exists now: the body is in error\.body, and creating again with `recreateIfExists: true` replaces the subscription and returns its id\.$/,
    )
  })

  test('200 with a page is a `ResponseValidationError` that names the address', async () => {
    answer(() => new Response('<!doctype html><title>Sign in</title>', { status: 200 }))
    const error = await failureOf(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({
      status: 200,
      url,
      body: '<!doctype html><title>Sign in</title>',
      message:
        `Could not create the subscription: ${url} answered 200 with a page of HTML or XML, which is not from the ` +
        'service, but perhaps from a login or a proxy. Check `baseUrl`, and the network in between.',
    })
  })

  test("a caller's abort of a create that was sent rejects with the caller's reason", async () => {
    const abort = new AbortController()
    answer(() => {
      abort.abort('enough')
      return new Response('', { status: 502 })
    })
    const create = client().createSubscription(subscription, { signal: abort.signal })
    await expect(create).rejects.toBe('enough')
  })

  test('200 with a page does not settle the outcome of an earlier lost attempt', async () => {
    let count = 0
    answer(() => new Response('<html>', { status: ++count === 1 ? 502 : 200 }))
    const wanted = { ...subscription, recreateIfExists: true }
    const error = await failureOf(client({ retry: { baseDelayMs: 0 } }).createSubscription(wanted))
    expect(error).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: { code: 'RESPONSE_VALIDATION', status: 200 },
    })
  })

  test.each([201, 400, 409, 503])(
    'an error about an answer of %i says which address answered',
    async (status) => {
      answer(() => new Response('no', { status }))
      expect(await failureOf(client().createSubscription(subscription))).toMatchObject({ status, url })
    },
  )

  test('a 201 without an id is reported, also after a lost answer', async () => {
    let count = 0
    answer(() => new Response('<html>', { status: ++count === 1 ? 502 : 201 }))
    const retry = { baseDelayMs: 0 }
    const error = await failureOf(
      client({ retry }).createSubscription({ ...subscription, recreateIfExists: true }),
    )
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({ status: 201, body: '<html>' })
  })

  test('a body that is encoded, although the request did not ask for it, is named', async () => {
    const headers = { 'content-encoding': 'gzip' }
    const issues = [{ path: [], message: 'is encoded as gzip, which the request did not ask for' }]
    service.onCall = () => new Response('\u001f\u008b', { status: 201, headers })
    const create = service.client().createSubscription(subscription)
    await expect(create).rejects.toMatchObject({ code: 'RESPONSE_VALIDATION', status: 201, issues })
    service.onToken = () => new Response('\u001f\u008b', { headers })
    const token = service.client().getAccessToken()
    await expect(token).rejects.toMatchObject({ code: 'RESPONSE_VALIDATION', status: 200, issues })
  })

  test('the largest and smallest safe ids are ids', async () => {
    for (const id of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0]) {
      answer(() => Response.json({ subscription_id: id }, { status: 201 }))
      expect(await client().createSubscription(subscription)).toEqual({ subscriptionId: id })
      answer(() => Response.json({ subscription_id: String(id) }, { status: 201 }))
      expect(await client().createSubscription(subscription)).toEqual({ subscriptionId: id })
    }
  })

  test('each status is an ApiError that says what to do', async () => {
    const messages = []
    for (const status of [199, 300, 302, 399, 400, 401, 403, 404, 418, 429, 501, 503]) {
      const error = await failureOf(
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
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 199 (the body). The whole answer is in error.body.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 300 (the body). Redirects are not followed: set \`baseUrl\` to the final address.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 302 (the body). Redirects are not followed: set \`baseUrl\` to the final address.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 399 (the body). Redirects are not followed: set \`baseUrl\` to the final address.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 400 (the body). The whole answer is in error.body.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 401 (the body). It does not accept the credentials: check \`auth\`, and that access was activated.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 403 (the body). The credentials are valid but do not permit this: ask the operator of the service for access.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 404 (the body). Check \`baseUrl\`: there is no subscription service at this address.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 418 (the body). The whole answer is in error.body.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 429 (the body). It is busy: try again later.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 501 (the body). It failed: try again later.",
        "Could not create the subscription: https://notifications.example.com/api/subscriptions answered 503 (the body). It is busy: try again later.",
      ]
    `)
  })

  test.each([
    [
      '{"error":"invalid_request","message":"callback_url is not reachable"}',
      ' ({"error":"invalid_request","message":"callback_url is not reachable"})',
    ],
    ['\r\n callback_url:\tnot reachable \n', ' (callback_url: not reachable)'],
    ['x'.repeat(1_000), ` (${'x'.repeat(300)}…)`],
    [`no user has the password ${secret}`, ' ([redacted: it repeats a secret of the request])'],
    [' <html>Bad Request</html>', ''],
  ])('the message has what the service says, on one line: %j', async (body, shown) => {
    answer(() => new Response(body, { status: 400 }))
    const error = await failureOf(
      client({ auth: { username: 'u', password: secret } }).createSubscription(subscription),
    )
    expect((error as Error).message).toBe(
      `Could not create the subscription: ${url} answered 400${shown}. The whole answer is in error.body.`,
    )
  })

  test('the message says that an answer has no body', async () => {
    answer(() => new Response('', { status: 400 }))
    const error = await failureOf(client().createSubscription(subscription))
    expect((error as Error).message).toBe(
      `Could not create the subscription: ${url} answered 400. The answer has no body.`,
    )
  })

  test('Retry-After is read in seconds', async () => {
    answer(() => new Response('', { status: 429, headers: { 'retry-after': '7' } }))
    const error = await failureOf(client().createSubscription(subscription))
    expect(error).toMatchObject({ retryAfterMs: 7_000 })
    expect((error as Error).message).toBe(
      `Could not create the subscription: ${url} answered 429. It is busy: try again in 7 s.`,
    )
  })

  test.each([500, 502, 504, 507, 520, 524, 599])('%i leaves the outcome unknown', async (status) => {
    answer(() => new Response('', { status }))
    const error = await failureOf(client().createSubscription(subscription))
    expect(error).toBeInstanceOf(OutcomeUnknownError)
    expect(error).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: { status },
      request: { usernames: ['alice'] },
    })
    expect((error as Error).message).toBe(
      'The request to create the subscription was sent, but its answer was lost: the subscription may exist. ' +
        'Create it again with `recreateIfExists: true`: that replaces it if it exists, and returns the id either way. ' +
        `(Could not create the subscription: ${url} answered ${status}. It failed: try again later.)`,
    )
  })
})

describe('an answer that is neither', () => {
  const calls = [
    ['unsubscribe', (client: NotificationClient) => client.unsubscribe(7)],
    [
      'update the subscription',
      (client: NotificationClient) => client.updateSubscriptionParameters(7, { parameters: { token: 'x' } }),
    ],
  ] as const

  test.each(calls)(
    '%s: an error status after an answer was lost says that it may have worked',
    async (attempt, call) => {
      for (const lost of [true, false]) {
        service = fakeService()
        service.onCall = (_call, count) => new Response('no', { status: count === 1 && lost ? 502 : 400 })
        await expect(call(service.client({ retry: { baseDelayMs: 0 } }))).rejects.toMatchObject({
          code: 'API',
          status: 400,
          body: 'no',
          message:
            `Could not ${attempt}: ${url}/7 answered 400 (no). The whole answer is in error.body.` +
            (lost ? ' The call may still have taken effect; repeating it is safe.' : ''),
        })
      }
    },
  )

  const text = 'the body'
  const page = '<!doctype html><title>Not Found</title>'
  const answers = calls.flatMap(([attempt, call]) =>
    [404, 410].flatMap((status) => [text, page].map((body) => [attempt, status, body, call] as const)),
  )
  test.each(answers)(
    '%s: %i (%s) is a SubscriptionNotFoundError with both readings',
    async (attempt, status, body, call) => {
      service.onCall = () => new Response(body, { status })
      const error = await failureOf(call(service.client()))
      expect(error).toBeInstanceOf(SubscriptionNotFoundError)
      expect(error).toBeInstanceOf(ApiError)
      const setting = attempt === 'unsubscribe' ? 'routes.unsubscribe' : 'routes.update'
      expect(error).toMatchObject({
        code: 'SUBSCRIPTION_NOT_FOUND',
        status,
        subscriptionId: 7,
        body,
        url: `${url}/7`,
        message:
          `Could not ${attempt}: ${url}/7 answered ${status}. Either there is no active subscription 7 (it was ` +
          'unsubscribed or replaced, or the service ended it after three failed callbacks in a row), or the service ' +
          `has another route for this: see the option \`${setting}\`.`,
      })
    },
  )

  test.each(calls)('%s: statuses that suggest another route name `routes`', async (attempt, call) => {
    const setting = attempt === 'unsubscribe' ? 'routes.unsubscribe' : 'routes.update'
    for (const status of [301, 308, 405, 501]) {
      service = fakeService()
      service.onCall = () => new Response(page, { status })
      const error = await failureOf(call(service.client()))
      expect(error).toMatchObject({ code: 'API', status, message: expect.stringContaining(setting) })
    }
  })

  test.each(calls)('%s: a page is not from the service', async (attempt, call) => {
    service.onCall = () => new Response('\n <html>log in', { status: 200 })
    const error = await failureOf(call(service.client()))
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({
      status: 200,
      body: '\n <html>log in',
      issues: [{ path: [], message: 'is a page of HTML or XML' }],
      message:
        `Could not ${attempt}: ${baseUrl}/api/subscriptions/7 answered 200 with a page of HTML or XML, which is not ` +
        'from the service, but perhaps from a login or a proxy. Check `baseUrl`, and the network in between.',
      url: `${baseUrl}/api/subscriptions/7`,
    })
  })

  test.each(calls)('%s: a success may have any other body', async (_attempt, call) => {
    service.onCall = () => new Response('{"text":"a < b"}', { status: 299 })
    await expect(call(service.client())).resolves.toBeUndefined()
  })
})
