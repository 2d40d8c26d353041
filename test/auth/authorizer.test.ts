import type { NotificationClient } from 'notification-subscriber'
import { beforeEach, describe, expect, test } from 'vitest'
import { deferred } from '../support/deferred.js'
import { type FakeService, fakeService, rejecting, subscription } from '../support/fake-service.js'

let service: FakeService
let client: NotificationClient
beforeEach(() => {
  service = fakeService()
  client = service.client()
})

const authorizations = (calls: readonly { headers: Headers }[]) =>
  calls.map(({ headers }) => headers.get('authorization'))

const rejected = () => new Response('', { status: 401 })
const created = () => Response.json({ subscription_id: 7 }, { status: 201 })

describe('a token that the service rejects (401)', () => {
  test('revoked on the server: the call succeeds after exactly one new token and one repeat', async () => {
    await client.getAccessToken()
    service.onCall = rejecting('token-1')
    expect(await client.createSubscription(subscription)).toEqual({ subscriptionId: 2 })
    expect(service.tokenRequests).toHaveLength(2)
    expect(authorizations(service.calls)).toEqual(['Bearer token-1', 'Bearer token-2'])
    expect(await client.getAccessToken()).toBe('token-2')
  })

  test('every token rejected: one call more with a new token, then ApiError 401', async () => {
    await client.getAccessToken()
    service.onCall = rejected
    await expect(client.createSubscription(subscription)).rejects.toMatchObject({ code: 'API', status: 401 })
    expect(authorizations(service.calls)).toEqual(['Bearer token-1', 'Bearer token-2'])
    expect(service.tokenRequests).toHaveLength(2)
  })

  test('a late 401 for an old token does not drop the newer one', async () => {
    await client.getAccessToken()
    const late = deferred<Response>()
    service.onCall = ({ headers }, count) => {
      if (count === 1) return late.promise
      return headers.get('authorization') === 'Bearer token-1' ? rejected() : created()
    }
    const slow = client.createSubscription(subscription)
    await client.createSubscription(subscription)
    expect(service.tokenRequests).toHaveLength(2)
    late.resolve(rejected())
    expect(await slow).toEqual({ subscriptionId: 7 })
    expect(service.tokenRequests).toHaveLength(2)
    expect(authorizations(service.calls).at(-1)).toBe('Bearer token-2')
  })

  test.each(['token-1', 'token-2'])(
    'an answer that shows %s, rejected or its successor, is shown without it',
    async (token) => {
      await client.getAccessToken()
      service.onCall = (_call, count) =>
        count === 1 ? rejected() : new Response(`not ${token}`, { status: 403 })
      await expect(client.unsubscribe(1)).rejects.toMatchObject({
        body: '[redacted: it repeats a secret of the request]',
      })
    },
  )
})

describe('the other kinds of credentials (docs/service.md, Authentication)', () => {
  test('user name and password are sent as Basic on the subscription call, without a token request', async () => {
    const client = service.client({ auth: { username: 'agent-desk', password: 'pä:ss' } })
    await client.createSubscription(subscription)
    const basic = Buffer.from('agent-desk:pä:ss', 'utf8').toString('base64')
    expect(authorizations(service.calls)).toEqual([`Basic ${basic}`])
    expect(service.tokenRequests).toHaveLength(0)
    const refused = { code: 'CONFIGURATION', issues: [{ path: ['auth'] }] }
    await expect(client.getAccessToken()).rejects.toMatchObject(refused)
  })

  test('a 401 to user name and password is the answer', async () => {
    service.onCall = rejected
    const client = service.client({ auth: { username: 'u', password: 'p' } })
    await expect(client.createSubscription(subscription)).rejects.toMatchObject({ status: 401 })
    expect(service.calls).toHaveLength(1)
  })

  test('the caller’s getAccessToken, a method, is called for every call, and once more after a 401', async () => {
    class Vault {
      tokens = ['old', 'new', 'newer']
      getAccessToken() {
        return this.tokens.shift() ?? expect.unreachable()
      }
    }
    service.onCall = rejecting('old')
    const client = service.client({ auth: new Vault() })
    await client.createSubscription(subscription)
    expect(authorizations(service.calls)).toEqual(['Bearer old', 'Bearer new'])
    expect(await client.getAccessToken()).toBe('newer')
  })

  test('after a 401 another token from the caller is tried once, and the same token is not', async () => {
    service.onCall = rejected
    let given = 0
    for (const getAccessToken of [async () => 'same', () => `given-${++given}`]) {
      const client = service.client({ auth: { getAccessToken } })
      await expect(client.createSubscription(subscription)).rejects.toMatchObject({ status: 401 })
    }
    expect(authorizations(service.calls)).toEqual(['Bearer same', 'Bearer given-1', 'Bearer given-2'])
  })

  test.each([undefined, { access_token: 'x' }, '', 'bearer\tx', 'line\r\nbreak', 'ümlaut'])(
    'a token from the caller that cannot be a header value is refused: %j',
    async (token) => {
      const client = service.client({ auth: { getAccessToken: () => token as never } })
      const issues = [{ path: ['auth', 'getAccessToken'] }]
      await expect(client.createSubscription(subscription)).rejects.toMatchObject({
        code: 'CONFIGURATION',
        issues,
      })
      expect(service.calls).toHaveLength(0)
    },
  )

  test("the caller's own error comes through untouched", async () => {
    const failure = new Error('vault sealed')
    const getAccessToken = () => {
      throw failure
    }
    const client = service.client({ auth: { getAccessToken } })
    await expect(client.createSubscription(subscription)).rejects.toBe(failure)
  })
})
