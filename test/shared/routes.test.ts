/** The routes of unsubscribe and update, which the interface document leaves open (docs/service.md, Assumed). */
import { NotificationClient, type Route, type Routes } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { baseUrl, credentials, fakeService } from '../support/fake-service.js'
import { wrongPlaces } from '../support/message-page.js'
import { routeOf } from '../support/routes.js'

const problemsOf = (routes: unknown) =>
  wrongPlaces(() => new NotificationClient({ baseUrl, auth: credentials, routes: routes as Routes }))

describe('a route that cannot work is refused by the name of the wrong part', () => {
  test.each<[string, string, Route | object, ...string[]]>([
    ['no place for the id', 'update', { path: '/api/x' }, 'path'],
    ['an ID field beside the place in the usual path', 'unsubscribe', { idField: 'id' }, 'path'],
    ['two places in the path', 'unsubscribe', { path: '/{subscriptionId}?a={subscriptionId}' }, 'path'],
    ['an unknown method', 'update', { method: 'GET' }, 'method'],
    ['an ID field with a space', 'update', { path: '/x', idField: 'a b' }, 'idField'],
    ['an empty ID field', 'update', { path: '/x', idField: '' }, 'idField'],
    ['a fragment', 'update', { path: '/a/{subscriptionId}#x' }, 'path'],
    ['a path that climbs', 'update', { path: '/a/../{subscriptionId}' }, 'path'],
    ['braces of something else', 'update', { path: '/{tenant}/{subscriptionId}' }, 'path'],
    ['no slash', 'update', { path: 'api/{subscriptionId}' }, 'path'],
    ['a space', 'update', { path: '/a b/{subscriptionId}' }, 'path'],
    ['a path beyond ASCII', 'update', { path: '/é/{subscriptionId}' }, 'path'],
  ])('%s', (_name, operation, route, ...parts) => {
    expect(problemsOf({ [operation]: route })).toEqual(parts.map((part) => `routes.${operation}.${part}`))
  })

  test('a typing error in a route, or in routes', () => {
    expect(problemsOf({ update: { url: '/{subscriptionId}' } })).toEqual(['routes.update'])
    expect(problemsOf({ delete: {} })).toEqual(['routes'])
  })
})

describe('what is sent', () => {
  const form = 'application/x-www-form-urlencoded'
  test.each<[string, Routes, string[], string[]]>([
    [
      'by default',
      {},
      ['DELETE', '/api/subscriptions/-7', '', ''],
      ['PUT', '/api/subscriptions/-7', form, 'token=a+b'],
    ],
    [
      'by another method',
      { unsubscribe: { method: 'POST' }, update: { method: 'PATCH' } },
      ['POST', routeOf('unsubscribe', -7).path, '', ''],
      ['PATCH', routeOf('update', -7).path, form, 'token=a+b'],
    ],
    [
      'with the id elsewhere in the path, or in its query',
      {
        unsubscribe: { method: 'POST', path: '/end?id={subscriptionId}&v=2' },
        update: { path: '/{subscriptionId}/token' },
      },
      ['POST', '/end?id=-7&v=2', '', ''],
      ['PUT', '/-7/token', form, 'token=a+b'],
    ],
    [
      'with the id in a form',
      {
        unsubscribe: { method: 'POST', path: '/end', idField: 'subscription_id' },
        update: { path: '/token', idField: 'subscription_id' },
      },
      ['POST', '/end', form, 'subscription_id=-7'],
      ['PUT', '/token', form, 'subscription_id=-7&token=a+b'],
    ],
  ])('%s', async (_name, routes, unsubscribe, update) => {
    const service = fakeService()
    service.onCall = () => new Response(null, { status: 204 })
    const client = service.client({ routes })
    await client.unsubscribe(-7)
    await client.updateSubscriptionParameters(-7, { parameters: { token: 'a b' } })
    expect(
      service.calls.map(({ body, headers, method, url }) => [
        method,
        url.replace(baseUrl, ''),
        headers.get('content-type') ?? '',
        body,
      ]),
    ).toEqual([unsubscribe, update])
  })

  test('no parameter takes the place of the id', async () => {
    const service = fakeService()
    const client = service.client({ routes: { update: { path: '/token', idField: 'id' } } })
    const refused = { code: 'INVALID_REQUEST', issues: [{ path: ['parameters', 'id'] }] }
    const call = client.updateSubscriptionParameters(7, { parameters: { id: '8' } })
    await expect(call).rejects.toMatchObject(refused)
    expect(service.calls).toEqual([])
  })
})
