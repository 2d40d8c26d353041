import { NotificationClient, type Routes } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, describe, expect, test } from 'vitest'
import { createPath, routeOf } from '../../support/routes.js'
import { type Answer, apiAuthorization, create, form, send } from '../support.js'

const emulator = await startEmulator()
afterAll(() => emulator.close())

const url = 'https://app.example.com/'
const refusalOf = ({ status, body }: Answer) => [status, JSON.parse(body)]

describe('paths and methods (docs/service.md, Endpoints)', () => {
  test.each([
    ['GET', createPath, 'POST'],
    ['PATCH', routeOf('unsubscribe', 1).path, expect.stringContaining(routeOf('unsubscribe', 1).method)],
  ])('%s %s is 405 with Allow: %s', async (method, path, allow) => {
    const answer = await send(emulator, method, path)
    expect(answer.headers.allow).toEqual(allow)
    const message = `Only ${answer.headers.allow} is allowed here`
    expect(refusalOf(answer)).toEqual([405, { error: 'method_not_allowed', message }])
  })

  test.each([
    '/',
    '/api/subscriptions/',
    '/api/subscriptions/1x',
    '/v1/api/subscriptions/1',
    '/auth/realms//protocol/openid-connect/token',
    '/auth/realms/a/b/protocol/openid-connect/token',
  ])('%s is 404', async (path) => {
    const answer = await send(emulator, 'POST', path)
    const message = 'There is nothing at this path'
    expect(refusalOf(answer)).toEqual([404, { error: 'not_found', message }])
  })

  test('a target that is no path is answered, too', async () => {
    expect((await send(emulator, 'GET', 'https://other.example/')).status).toBe(404)
    expect(emulator.requests.at(-1)).toMatchObject({ path: 'https://other.example/', status: 404 })
  })
})

describe('the size of a body', () => {
  test('answers 413 to a body over 1 MiB, and keeps the connection usable', async () => {
    const answer = await create(emulator, { url, fields: { token: 'x'.repeat(1024 * 1024) } })
    const message = 'The request body is over 1048576 bytes'
    expect(refusalOf(answer)).toEqual([413, { error: 'content_too_large', message }])
    const largest = 'x'.repeat(1024 * 1024)
    expect((await send(emulator, 'POST', createPath, { body: largest })).status).toBe(401)
  })

  test('reads no more of a body than shows that it is too long', async () => {
    await using fresh = await startEmulator()
    let pulls = 0
    const body = new ReadableStream({
      pull(controller) {
        pulls += 1
        controller.enqueue(new TextEncoder().encode('x'.repeat(400 * 1024)))
      },
    })
    const request = new Request(fresh.baseUrl + createPath, {
      method: 'POST',
      body,
      duplex: 'half',
    })
    expect((await fresh.fetch(request)).status).toBe(413)
    expect(fresh.requests[0]).toMatchObject({ bodyLength: 1024 * 1024, status: 413 })
    expect(pulls).toBeLessThan(6)
  })
})

describe('the option `routes`: a service whose unsubscribe and update are elsewhere', () => {
  const end = '/api/subscriptions/unsubscribe'

  test.each<[string, Routes]>([
    ['as documented', {}],
    [
      'with the id in the query',
      {
        unsubscribe: { method: 'POST', path: '/end?id={subscriptionId}&v=2' },
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
    const recorded = emulator.requests.map(({ operation, subscriptionId }) => [operation, subscriptionId])
    expect(recorded).toEqual([
      ['token', undefined],
      ['create', 1],
      ['create', 2],
      ['update', 1],
      ['unsubscribe', 1],
      ['unsubscribe', 1],
    ])
  })

  test.each([
    [form, '', 400],
    [form, 'id=1x', 400],
    ['application/json', 'id=1', 415],
    [form, 'id=99', 404],
  ])('a body of %s that is %j instead of a form with the id is answered %i', async (type, body, status) => {
    await using emulator = await startEmulator({
      routes: { unsubscribe: { method: 'POST', path: end, idField: 'id' } },
    })
    const headers = { authorization: apiAuthorization(emulator), 'content-type': type }
    expect((await send(emulator, 'POST', end, { headers, body })).status).toBe(status)
  })
})
