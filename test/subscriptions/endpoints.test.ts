import { beforeEach, describe, expect, test } from 'vitest'
import { deferred } from '../support/deferred.js'
import { failureOf } from '../support/failure.js'
import { baseUrl, type FakeService, fakeService } from '../support/fake-service.js'
import { routeOf } from '../support/routes.js'

let service: FakeService
beforeEach(() => {
  service = fakeService()
})

test('a create (docs/service.md, Endpoints) is a form POST with a Bearer token, lists joined by commas, parameters in the form and headers as headers', async () => {
  service.onCall = () => Response.json({ subscription_id: 123 }, { status: 201 })
  const created = await service.client().createSubscription({
    notificationTypes: ['behavioral', 'call-score'],
    usernames: ['alice', 'bob'],
    callbackUrl: 'https://app.example.com/notifications?a=b&c=d',
    recreateIfExists: true,
    parameters: { token: 'a b+c%&=', 'X-Region': 'eu' },
    headers: { UserData: 'myData' },
  })
  expect(created).toEqual({ subscriptionId: 123 })
  const [request] = service.calls
  expect(request?.method).toBe('POST')
  expect(request?.headers.get('authorization')).toBe('Bearer token-1')
  expect(request?.headers.get('content-type')).toBe('application/x-www-form-urlencoded')
  expect(request?.headers.get('userdata')).toBe('myData')
  expect(request?.body).toBe(
    'notification_type=behavioral%2Ccall-score&username=alice%2Cbob' +
      '&callback_url=https%3A%2F%2Fapp.example.com%2Fnotifications%3Fa%3Db%26c%3Dd' +
      '&recreateIfExists=true&token=a+b%2Bc%25%26%3D&X-Region=eu',
  )
})

describe('unsubscribe (docs/service.md, Assumed)', () => {
  test('after a lost answer, 404 means that the first attempt succeeded, if the route has answered 2xx before', async () => {
    for (const status of [404, 410]) {
      service = fakeService()
      service.onCall = (_call, count) => new Response('', { status: count % 2 === 1 ? 502 : status })
      const client = service.client({ retry: { baseDelayMs: 0 } })
      // A failure proves no route, however often.
      for (const _ of [1, 2]) {
        await expect(client.unsubscribe(42)).rejects.toMatchObject({ provesEnded: false })
      }
      service.onCall = () => new Response(null, { status: 204 })
      await client.unsubscribe(41)
      service.onCall = (_call, count) => new Response('', { status: count === 6 ? 502 : status })
      await client.unsubscribe(42)
      expect(service.calls).toHaveLength(7)
      // Nothing was lost: the answer is about the first try.
      await expect(client.unsubscribe(42)).rejects.toMatchObject({ provesEnded: true })
    }
  })

  test('a route that another call proves meanwhile is proven', async () => {
    const late = deferred<Response>()
    service.onCall = (_call, count) => (count === 1 ? late.promise : new Response(null, { status: 204 }))
    const client = service.client()
    await client.getAccessToken()
    const ended = failureOf(client.unsubscribe(42))
    await client.unsubscribe(41)
    late.resolve(new Response('', { status: 404 }))
    service.onCall = () => new Response('', { status: 404 })
    expect(String(await ended)).toBe(String(await failureOf(client.unsubscribe(42))))
  })

  test.each([
    ['unsubscribe', 400, 'API'],
    ['update', 404, 'SUBSCRIPTION_NOT_FOUND'],
  ])('%s on a route that has worked, after a lost answer, fails with %i', async (operation, status, code) => {
    const client = service.client({ retry: { baseDelayMs: 0 } })
    const call = () =>
      operation === 'update'
        ? client.updateSubscriptionParameters(7, { parameters: { token: 'x' } })
        : client.unsubscribe(7)
    service.onCall = () => new Response(null, { status: 204 })
    await call()
    service.onCall = (_call, count) => new Response('', { status: count === 2 ? 502 : status })
    await expect(call()).rejects.toMatchObject({ code, status })
    expect(service.calls).toHaveLength(3)
  })

  test('a 404 after a first attempt that was refused is a 404', async () => {
    const client = service.client({ retry: { baseDelayMs: 0 } })
    service.onCall = () => new Response(null, { status: 204 })
    await client.unsubscribe(41)
    service.onCall = (_call, count) => new Response('', { status: count === 2 ? 429 : 404 })
    await expect(client.unsubscribe(42)).rejects.toMatchObject({ code: 'SUBSCRIPTION_NOT_FOUND' })
  })
})

test('updateSubscriptionParameters (docs/service.md, Rules) is a PUT with the parameters as a form and the headers as headers; any 2xx is a success', async () => {
  for (const status of [200, 202, 204]) {
    service = fakeService()
    service.onCall = () => new Response(null, { status })
    await service
      .client()
      .updateSubscriptionParameters(7, { parameters: { token: 'next' }, headers: { UserData: 'x' } })
    const [call] = service.calls
    expect(call).toMatchObject({
      method: 'PUT',
      url: baseUrl + routeOf('update', 7).path,
      body: 'token=next',
    })
    expect(call?.headers.get('content-type')).toBe('application/x-www-form-urlencoded')
    expect(call?.headers.get('userdata')).toBe('x')
  }
})
