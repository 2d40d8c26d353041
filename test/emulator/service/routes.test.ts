/** The option `routes`: an app whose service has unsubscribe and update elsewhere is tested on the emulator. */
import { NotificationClient, type Routes } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import { apiAuthorization, created, form, send } from '../support.js'

const json = 'application/json'
const end = '/api/subscriptions/unsubscribe'

describe('a client of the emulator', () => {
  test.each<[string, Routes]>([
    ['as documented', {}],
    ['by other methods', { unsubscribe: { method: 'POST' }, update: { method: 'PATCH' } }],
    [
      'with the id in the query',
      {
        unsubscribe: { method: 'GET', path: '/end?id={subscriptionId}&v=2' },
        update: { path: '/change?{subscriptionId}' },
      },
    ],
    [
      'with the id in a form',
      {
        unsubscribe: { method: 'POST', path: end, idField: 'subscription_id' },
        update: { path: '/change', idField: 'id' },
      },
    ],
    [
      'with the id in JSON',
      {
        unsubscribe: { method: 'POST', path: end, idField: 'subscription_id', format: 'json' },
        update: { path: '/change', idField: 'id', format: 'json' },
      },
    ],
    ['with values in JSON', { update: { format: 'json' } }],
  ])('updates and unsubscribes %s', async (_name, routes) => {
    await using emulator = await startEmulator({ routes })
    await using client = new NotificationClient(emulator.clientOptions)
    const input = { notificationTypes: ['behavioral'], callbackUrl: 'https://app.example.com/' } as const
    const first = await client.createSubscription({
      ...input,
      usernames: ['alice'],
      parameters: { token: '1' },
    })
    await client.createSubscription({ ...input, usernames: ['bob'], parameters: { token: '1' } })
    await client.updateSubscriptionParameters(first.subscriptionId, { parameters: { token: '2' } })
    expect(emulator.subscriptions.map(({ parameters }) => parameters)).toEqual([
      { token: '2' },
      { token: '1' },
    ])
    await client.unsubscribe(first.subscriptionId)
    expect(emulator.subscriptions.map(({ usernames }) => usernames)).toEqual([['bob']])
    await expect(client.unsubscribe(first.subscriptionId)).rejects.toMatchObject({ status: 404 })
    expect(emulator.requests.map(({ operation }) => operation)).toEqual([
      'token',
      'create',
      'create',
      'update',
      'unsubscribe',
      'unsubscribe',
    ])
  })
})

test('any other path is a 404, and changes nothing', async () => {
  const routes: Routes = {
    unsubscribe: { method: 'POST', path: '/end?id={subscriptionId}' },
    update: { method: 'POST', path: '/change/{subscriptionId}' },
  }
  await using emulator = await startEmulator({ routes })
  const id = await created(emulator, { fields: { token: '1' } })
  const before = [...emulator.subscriptions]
  const headers = { authorization: apiAuthorization(emulator), 'content-type': form }
  for (const [method, path] of [
    ['DELETE', `/api/subscriptions/${id}`],
    ['PUT', `/api/subscriptions/${id}`],
    ['POST', '/end'],
    ['POST', `/end?id=${id}&v=2`],
    ['POST', '/change/x'],
  ] as const) {
    expect((await send(emulator, method, path, { headers, body: 'token=2' })).status).toBe(404)
  }
  const answer = await send(emulator, 'DELETE', `/end?id=${id}`, { headers })
  expect([answer.status, answer.headers.allow]).toEqual([405, 'POST'])
  expect(emulator.subscriptions).toEqual(before)
})

test.each([
  ['form', form, '', 400],
  ['form', form, 'id=x', 400],
  ['form', form, '{"id":1}', 400],
  ['form', json, 'id=1', 415],
  ['form', form, 'id=99', 404],
  ['json', json, 'id=1', 400],
  ['json', json, '[]', 400],
  ['json', json, 'null', 400],
  ['json', json, '{"id":{}}', 400],
  ['json', json, '{"id":true}', 400],
  ['json', form, '{"id":1}', 415],
  ['json', `${json}; charset=utf-8`, '{"id":"99"}', 404],
] as const)(
  'where %s is expected, a body of %s that is %j is answered %i',
  async (format, type, body, status) => {
    await using emulator = await startEmulator({
      routes: { unsubscribe: { path: end, idField: 'id', format } },
    })
    const headers = { authorization: apiAuthorization(emulator), 'content-type': type }
    expect((await send(emulator, 'DELETE', end, { headers, body })).status).toBe(status)
  },
)

test.each<[Routes, string]>([
  [{ update: { path: '/x' } }, 'routes.update.path'],
  [{ update: { method: 'DELETE' } }, 'routes.update'],
  [{ update: { method: 'POST', path: '/api/subscriptions', idField: 'id' } }, 'routes.update'],
  [{ unsubscribe: { method: 'POST', path: '/api/subscriptions', idField: 'id' } }, 'routes.unsubscribe'],
])('refuses routes that cannot work, or that are ambiguous: %j', async (routes, path) => {
  await expect(startEmulator({ routes })).rejects.toMatchObject({
    code: 'CONFIGURATION',
    issues: [{ path: path.split('.') }],
  })
})
