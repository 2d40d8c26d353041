import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeService, subscription, tokenAnswer } from '../support/fake-service.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A store in the shape of Keyv, which expires its entries itself. */
function keyValueStore() {
  const entries = new Map<string, { value: string; expiresAt: number }>()
  return {
    entries,
    async get(key: string) {
      const entry = entries.get(key)
      return entry && entry.expiresAt > Date.now() ? entry.value : undefined
    },
    async set(key: string, value: string, ttlMs: number) {
      entries.set(key, { value, expiresAt: Date.now() + ttlMs })
      return true
    },
    async delete(key: string) {
      return entries.delete(key)
    },
  }
}

const clientWith = (service: ReturnType<typeof fakeService>, tokenCache: object, auth: object = {}) =>
  service.client({
    auth: {
      authUrl: 'https://auth.acme.example.com',
      domain: 'acme',
      clientId: 'subscriber',
      clientSecret: 'c1ient-s3cret',
      tokenCache: tokenCache as ReturnType<typeof keyValueStore>,
      ...auth,
    },
  })

describe('tokenCache', () => {
  test('a second process uses the token of the first', async () => {
    const service = fakeService()
    const store = keyValueStore()
    expect(await clientWith(service, store).getAccessToken()).toBe('token-1')
    expect(await clientWith(service, store).getAccessToken()).toBe('token-1')
    expect(service.tokenRequests).toHaveLength(1)
  })

  test('an entry lives as long as its token and names no secret in its key', async () => {
    const service = fakeService()
    const store = keyValueStore()
    await clientWith(service, store).getAccessToken()
    const [key, entry] = [...store.entries][0] ?? []
    expect(entry?.expiresAt).toBe(Date.now() + 3_600_000)
    expect(key).not.toContain('c1ient-s3cret')
  })

  test('an adopted token is used to its end and never past it', async () => {
    const service = fakeService()
    const store = keyValueStore()
    await clientWith(service, store).getAccessToken()
    await vi.advanceTimersByTimeAsync(1_800_000)
    const second = clientWith(service, store)
    expect(await second.getAccessToken()).toBe('token-1')
    await vi.advanceTimersByTimeAsync(1_799_999)
    service.onToken = () => new Response('', { status: 503 })
    expect(await second.getAccessToken()).toBe('token-1')
    service.onToken = () => tokenAnswer('token-2')
    await vi.advanceTimersByTimeAsync(1)
    expect(await second.getAccessToken()).toBe('token-2')
  })

  test('a refresh by one process is taken over by the others', async () => {
    const service = fakeService()
    const store = keyValueStore()
    const first = clientWith(service, store)
    const second = clientWith(service, store)
    await first.getAccessToken()
    await second.getAccessToken()
    await vi.advanceTimersByTimeAsync(3_300_000)
    await first.getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    await second.getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    expect(await first.getAccessToken()).toBe('token-2')
    expect(await second.getAccessToken()).toBe('token-2')
    expect(service.tokenRequests).toHaveLength(2)
  })

  test('other credentials, another tenant or another scope do not share', async () => {
    const service = fakeService()
    const store = keyValueStore()
    await clientWith(service, store).getAccessToken()
    await clientWith(service, store, { clientId: 'other' }).getAccessToken()
    await clientWith(service, store, { scope: 'read' }).getAccessToken()
    expect(service.tokenRequests).toHaveLength(3)
  })

  test('a rejected token is removed for everybody and not taken over again', async () => {
    const service = fakeService()
    const store = keyValueStore()
    await clientWith(service, store).getAccessToken()
    service.onCall = ({ headers }) =>
      headers.get('authorization') === 'Bearer token-1'
        ? new Response('', { status: 401 })
        : Response.json({ subscription_id: 1 }, { status: 201 })
    // Its token is another process's, so one that is fetched during this call is worth a try.
    await clientWith(service, store).createSubscription(subscription)
    expect(service.tokenRequests).toHaveLength(2)
    expect(await clientWith(service, store).getAccessToken()).toBe('token-2')
  })

  test('a rejected token that another process has replaced already leaves the new one alone', async () => {
    const service = fakeService()
    const store = keyValueStore()
    const first = clientWith(service, store)
    const second = clientWith(service, store)
    await first.getAccessToken()
    await second.getAccessToken()
    service.onCall = ({ headers }) =>
      headers.get('authorization') === 'Bearer token-1'
        ? new Response('', { status: 401 })
        : Response.json({ subscription_id: 1 }, { status: 201 })
    await first.createSubscription(subscription)
    await second.createSubscription(subscription)
    expect(service.tokenRequests).toHaveLength(2)
  })

  test('a slow delete of the rejected token does not hit the new one', async () => {
    const service = fakeService()
    const store = keyValueStore()
    const slow = {
      ...store,
      async delete(key: string) {
        await new Promise((resolve) => setTimeout(resolve, 40))
        return store.delete(key)
      },
    }
    await clientWith(service, slow).getAccessToken()
    service.onCall = ({ headers }) =>
      headers.get('authorization') === 'Bearer token-1'
        ? new Response('', { status: 401 })
        : Response.json({ subscription_id: 1 }, { status: 201 })
    await clientWith(service, slow).createSubscription(subscription)
    await vi.advanceTimersByTimeAsync(100)
    expect([...store.entries.values()].map(({ value }) => JSON.parse(value).accessToken)).toEqual(['token-2'])
  })

  test.each(['', 'two words', 'a\r\nb'])(
    'a stored token that could not be a header value is not used: %j',
    async (bad) => {
      const service = fakeService()
      const value = JSON.stringify({ accessToken: bad, lifetimeMs: 60_000, expiresAtMs: Date.now() + 30_000 })
      const client = clientWith(service, { get: () => value, set() {}, delete() {} })
      expect(await client.getAccessToken()).toBe('token-1')
    },
  )

  const broken = () => {
    throw new Error('store is down, key token-1')
  }
  test.each([
    ['throws', { get: broken, set: broken, delete: broken }],
    ['rejects', { get: async () => broken(), set: async () => broken(), delete: async () => broken() }],
    ['holds rubbish', { get: () => '{"accessToken":7}', set() {}, delete() {} }],
    ['holds no JSON', { get: async () => 'rubbish', set() {}, delete() {} }],
    ['holds an object', { get: () => ({}), set() {}, delete() {} }],
  ])('a store that %s is as good as none', async (_name, store) => {
    const service = fakeService()
    const lines: string[] = []
    const log = (fields: object, message: string) => lines.push(JSON.stringify(fields) + message)
    const client = service.client({
      logger: { debug: log, info: log, warn: log, error: log },
      auth: {
        authUrl: 'https://auth.acme.example.com',
        domain: 'acme',
        clientId: 'subscriber',
        clientSecret: 'c1ient-s3cret',
        tokenCache: store,
      },
    })
    expect(await client.getAccessToken()).toBe('token-1')
    await client.createSubscription(subscription)
    expect(service.tokenRequests).toHaveLength(1)
    expect(lines.join()).not.toContain('token-1')
  })

  test('a store that hangs is passed over', async () => {
    const service = fakeService()
    const hang = () => new Promise<undefined>(() => {})
    const client = clientWith(service, { get: hang, set: hang, delete: hang })
    const token = client.getAccessToken()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await token).toBe('token-1')
  })

  test('an entry from a process whose clock is ahead is not trusted', async () => {
    const service = fakeService()
    const store = keyValueStore()
    await clientWith(service, store).getAccessToken()
    vi.setSystemTime(Date.now() - 86_400_000)
    expect(await clientWith(service, store).getAccessToken()).toBe('token-2')
  })
})
