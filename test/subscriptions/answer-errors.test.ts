/** What answers the calls make errors of; the messages: test/messages/answers.txt. */
import type { NotificationClient } from 'notification-subscriber'
import { beforeEach, describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import { baseUrl, type FakeService, fakeService, subscription } from '../support/fake-service.js'
import { createPath, routeOf } from '../support/routes.js'

const url = baseUrl + createPath

let service: FakeService
beforeEach(() => {
  service = fakeService()
})

const client = (options: object = {}) => service.client({ retry: false, ...options })

function answer(response: () => Response) {
  service.onCall = response
}

describe('409 Conflict (docs/service.md, Errors)', () => {
  beforeEach(() => answer(() => new Response('conflict', { status: 409 })))

  test('without recreateIfExists it is a duplicate or an overlap', async () => {
    await expect(client().createSubscription(subscription)).rejects.toMatchObject({
      code: 'SUBSCRIPTION_CONFLICT',
      status: 409,
      body: 'conflict',
      reason: 'duplicate-or-overlap',
      request: { ...subscription, recreateIfExists: false },
    })
  })

  test('tryCreateSubscription returns it instead', async () => {
    const result = await client().tryCreateSubscription(subscription)
    expect(result).toMatchObject({ created: false, conflict: { reason: 'duplicate-or-overlap' } })
  })

  test('the error keeps what was asked for, even if the caller changes it meanwhile', async () => {
    const usernames = Array.from({ length: 500 }, (_, index) => `agent-${index}`)
    const asked = [...usernames]
    const notificationTypes = ['behavioral' as const]
    const callbackUrl = new URL('https://app.example.com/one?key=value')
    const call = failureOf(client().createSubscription({ usernames, notificationTypes, callbackUrl }))
    usernames.push('bob')
    notificationTypes.pop()
    callbackUrl.pathname = '/two'
    expect(await call).toMatchObject({
      request: {
        usernames: asked,
        notificationTypes: ['behavioral'],
        callbackUrl: 'https://app.example.com/one?…',
      },
    })
  })
})

describe('other answers', () => {
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
    const refused = { code: 'RESPONSE_VALIDATION', status: 201, body }
    await expect(client().createSubscription(subscription)).rejects.toMatchObject(refused)
  })

  test.each(['createSubscription', 'tryCreateSubscription'] as const)(
    '%s: a 409 after a 503 may be about its own first attempt',
    async (method) => {
      service.onCall = (_call, count) => new Response('', { status: count === 1 ? 503 : 409 })
      const creating = service.client({ retry: { baseDelayMs: 0 } })[method](subscription)
      await expect(creating).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        cause: { code: 'SUBSCRIPTION_CONFLICT' },
      })
      expect(service.calls).toHaveLength(2)
    },
  )

  test('a 409 after a 503 is a partial overlap if the create replaces an identical subscription', async () => {
    service.onCall = (_call, count) => new Response('', { status: count === 1 ? 503 : 409 })
    const client = service.client({ retry: { baseDelayMs: 0 } })
    const creating = client.createSubscription({ ...subscription, recreateIfExists: true })
    const conflict = { reason: 'partial-overlap', request: { recreateIfExists: true } }
    await expect(creating).rejects.toMatchObject(conflict)
  })

  test('a 409 after a 429 is a conflict: nothing was done before', async () => {
    service.onCall = (_call, count) => new Response('', { status: count === 1 ? 429 : 409 })
    const creating = service.client({ retry: { baseDelayMs: 0 } }).createSubscription(subscription)
    await expect(creating).rejects.toMatchObject({ code: 'SUBSCRIPTION_CONFLICT' })
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

  test.each([
    [200, { code: 'OUTCOME_UNKNOWN', cause: { code: 'RESPONSE_VALIDATION', status: 200 } }],
    [201, { code: 'RESPONSE_VALIDATION', status: 201, body: '<html>' }],
  ])('a page with %i after a lost answer: only 201 settles the outcome', async (status, expected) => {
    let count = 0
    answer(() => new Response('<html>', { status: ++count === 1 ? 502 : status }))
    const wanted = { ...subscription, recreateIfExists: true }
    const error = await failureOf(client({ retry: { baseDelayMs: 0 } }).createSubscription(wanted))
    expect(error).toMatchObject(expected)
  })

  test.each([200, 201, 400, 409, 503])(
    'an error about an answer of %i says which address answered',
    async (status) => {
      answer(() => new Response('<html>', { status }))
      const error = await failureOf(client().createSubscription(subscription))
      expect(error).toMatchObject({ status, url, body: '<html>' })
    },
  )

  test('the largest and smallest safe ids are ids', async () => {
    for (const id of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0]) {
      for (const subscription_id of [id, String(id)]) {
        answer(() => Response.json({ subscription_id }, { status: 201 }))
        expect(await client().tryCreateSubscription(subscription)).toEqual({
          created: true,
          subscriptionId: id,
        })
      }
    }
  })
})

describe.each([
  ['unsubscribe', 'unsubscribe', (client: NotificationClient) => client.unsubscribe(7)],
  [
    'updateSubscriptionParameters',
    'update',
    (client: NotificationClient) => client.updateSubscriptionParameters(7, { parameters: { token: 'x' } }),
  ],
] as const)('%s', (_name, operation, call) => {
  const url = baseUrl + routeOf(operation, 7).path
  const page = '<!doctype html><title>Not Found</title>'

  test('an error status is that of the last answer, also after a lost one', async () => {
    service.onCall = (_call, count) => new Response('no', { status: count === 1 ? 502 : 400 })
    const failed = call(service.client({ retry: { baseDelayMs: 0 } }))
    await expect(failed).rejects.toMatchObject({ code: 'API', status: 400, body: 'no' })
  })

  test.each([404, 410].flatMap((status) => ['the body', page].map((body) => [status, body] as const)))(
    '%i (%s) is a SubscriptionNotFoundError',
    async (status, body) => {
      answer(() => new Response(body, { status }))
      const missing = { code: 'SUBSCRIPTION_NOT_FOUND', status, subscriptionId: 7, body, url }
      await expect(call(service.client())).rejects.toMatchObject(missing)
    },
  )

  test.each([
    ['\n <html>log in', 'is a page of HTML or XML'],
    ['{"error":"no such subscription"}', 'is an error'],
    ['{"errors":{"id":["unknown"]}}', 'is an error'],
    ['{"fault":{"id":1}}', 'is an error'],
    ['{"ok":false}', 'is an error'],
    ['{"success":false,"message":"not now"}', 'is an error'],
  ])('a 200 with %j is no success', async (body, message) => {
    answer(() => new Response(body, { status: 200 }))
    const issues = [{ path: [], message }]
    const refused = { code: 'RESPONSE_VALIDATION', status: 200, body, issues, url }
    await expect(call(service.client())).rejects.toMatchObject(refused)
  })

  test.each(['{"text":"a < b"}', '{"error":null,"errors":[],"ok":true}', 'false', 'null', '"error"'])(
    'a success may have the body %j',
    async (body) => {
      answer(() => new Response(body, { status: 299 }))
      await expect(call(service.client())).resolves.toBeUndefined()
    },
  )
})
