import {
  ApiError,
  type NotificationClient,
  ResponseValidationError,
  SubscriptionNotFoundError,
} from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { baseUrl, fakeService } from '../support/fake-service.js'

describe('unsubscribe (interface 4.3; method and path from the public developer pages)', () => {
  test('is a DELETE without a body', async () => {
    const service = fakeService()
    service.onCall = () => new Response(null, { status: 204 })
    expect(await service.client().unsubscribe(42)).toBeUndefined()
    expect(service.calls).toMatchObject([
      { method: 'DELETE', url: `${baseUrl}/api/subscriptions/42`, body: '' },
    ])
    expect(service.calls[0]?.headers.get('authorization')).toBe('Bearer token-1')
  })

  test('404 is a SubscriptionNotFoundError that is an ApiError and knows the id', async () => {
    const service = fakeService()
    service.onCall = () => new Response('gone', { status: 404 })
    const error = await service
      .client()
      .unsubscribe(42)
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(SubscriptionNotFoundError)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      code: 'SUBSCRIPTION_NOT_FOUND',
      status: 404,
      subscriptionId: 42,
      body: 'gone',
      message:
        'There is no active subscription 42: it was unsubscribed or replaced, or the service ended it ' +
        'after three failed callbacks in a row. Create a new one if notifications are still wanted.',
    })
  })

  test('a 404 to a repeat means that the first try, whose answer was lost, has worked', async () => {
    const service = fakeService()
    service.onCall = (_call, count) => new Response('', { status: count === 1 ? 502 : 404 })
    await service.client({ retry: { baseDelayMs: 0 } }).unsubscribe(42)
    expect(service.calls).toHaveLength(2)
  })

  test('a 404 after the service turned the first try away is a 404', async () => {
    const service = fakeService()
    service.onCall = (_call, count) => new Response('', { status: count === 1 ? 503 : 404 })
    await expect(service.client({ retry: { baseDelayMs: 0 } }).unsubscribe(42)).rejects.toBeInstanceOf(
      SubscriptionNotFoundError,
    )
  })
})

describe('updateSubscriptionParameters (interface 3, rule 3, and 4.3)', () => {
  test('is a PUT with the parameters as a form and the headers as headers; any 2xx is a success', async () => {
    for (const status of [200, 202, 204]) {
      const service = fakeService()
      service.onCall = () => new Response(null, { status })
      await service
        .client()
        .updateSubscriptionParameters(7, { parameters: { token: 'next' }, headers: { UserData: 'x' } })
      const [call] = service.calls
      expect(call).toMatchObject({ method: 'PUT', url: `${baseUrl}/api/subscriptions/7`, body: 'token=next' })
      expect(call?.headers.get('content-type')).toBe('application/x-www-form-urlencoded')
      expect(call?.headers.get('userdata')).toBe('x')
    }
  })

  test('404 is a SubscriptionNotFoundError', async () => {
    const service = fakeService()
    service.onCall = () => new Response('', { status: 404 })
    await expect(
      service.client().updateSubscriptionParameters(7, { parameters: { token: 'next' } }),
    ).rejects.toBeInstanceOf(SubscriptionNotFoundError)
  })

  test.each([{}, { parameters: {} }, { parameters: {}, headers: {} }])(
    '%j changes nothing and is refused',
    async (input) => {
      await expect(fakeService().client().updateSubscriptionParameters(7, input)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        issues: [{ message: 'at least one parameter or header must be given' }],
      })
    },
  )
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
        const service = fakeService()
        service.onCall = (_call, count) => new Response('no', { status: count === 1 && lost ? 502 : 400 })
        await expect(call(service.client({ retry: { baseDelayMs: 0 } }))).rejects.toMatchObject({
          code: 'API',
          status: 400,
          body: 'no',
          message:
            `Could not ${attempt}: the service answered 400. What it says about that is in error.body.` +
            (lost ? ' It may have taken effect all the same; repeating it is safe.' : ''),
        })
      }
    },
  )

  test.each(calls)('%s: a page is not from the service', async (attempt, call) => {
    const service = fakeService()
    service.onCall = () => new Response('\n <html>log in', { status: 200 })
    const error = await call(service.client()).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({
      status: 200,
      body: '\n <html>log in',
      issues: [{ path: [], message: 'is a page of HTML or XML' }],
      message:
        `Could not ${attempt}: something answered 200 with a page at ${baseUrl}/api/subscriptions/7, ` +
        'perhaps a login or a proxy, and not the service. Check `baseUrl`, and the network in between.',
      url: `${baseUrl}/api/subscriptions/7`,
    })
  })

  test.each(calls)('%s: a success may have any other body', async (_attempt, call) => {
    const service = fakeService()
    service.onCall = () => new Response('{"text":"a < b"}', { status: 299 })
    await expect(call(service.client())).resolves.toBeUndefined()
  })
})

test('routes override method and path of both', async () => {
  const service = fakeService()
  service.onCall = () => new Response(null, { status: 204 })
  const client = service.client({
    routes: {
      unsubscribe: { method: 'POST', path: '/v2/subscriptions/{subscriptionId}/end' },
      update: { path: '/v2/subscriptions/{subscriptionId}/token' },
    },
  })
  await client.unsubscribe(1)
  await client.updateSubscriptionParameters(2, { parameters: { token: 'next' } })
  const post = service.client({ routes: { update: { method: 'POST' } } })
  await post.updateSubscriptionParameters(3, { parameters: { token: 'next' } })
  expect(service.calls.map(({ method, url }) => `${method} ${url}`)).toEqual([
    `POST ${baseUrl}/v2/subscriptions/1/end`,
    `PUT ${baseUrl}/v2/subscriptions/2/token`,
    `POST ${baseUrl}/api/subscriptions/3`,
  ])
  expect(service.calls.map(({ headers }) => headers.get('accept'))).toEqual(
    service.calls.map(() => 'application/json'),
  )
})
