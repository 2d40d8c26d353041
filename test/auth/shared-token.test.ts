import type { KeyValueStore } from 'notification-subscriber'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  credentials,
  type FakeService,
  fakeService,
  rejecting,
  subscription,
  tokenAnswer,
} from '../support/fake-service.js'
import { NaiveStore } from '../support/naive-store.js'
import { recordingLogger } from '../support/recording-logger.js'

let service: FakeService
let store: NaiveStore
beforeEach(() => {
  vi.useFakeTimers()
  service = fakeService()
  store = new NaiveStore()
})
afterEach(() => {
  vi.useRealTimers()
})

const clientWith = (tokenCache: object, auth: object = {}) =>
  service.client({ auth: { ...credentials, tokenCache: tokenCache as KeyValueStore, ...auth } })

/** A client with this store, and the lines that it logged of an event. */
function loggedClientWith(tokenCache: object) {
  const { lines, ...logger } = recordingLogger()
  const client = service.client({ auth: { ...credentials, tokenCache: tokenCache as KeyValueStore }, logger })
  return {
    client,
    lines,
    linesOf: (event: string) => lines.filter(({ fields }) => Object(fields).event === event),
  }
}

describe('tokenCache', () => {
  test('an entry lives as long as its token and names no secret in its key', async () => {
    await clientWith(store).getAccessToken()
    const expiresAtMs = Date.now() + 3_600_000
    expect([...store.entries]).toEqual([
      [
        'notification-subscriber ["https://auth.acme.example.com/auth/realms/acme/protocol/openid-connect/token","subscriber",""]',
        {
          expiresAt: expiresAtMs,
          value: JSON.stringify({ accessToken: 'token-1', lifetimeMs: 3_600_000, expiresAtMs }),
        },
      ],
    ])
    await vi.advanceTimersByTimeAsync(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a token that has expired on arrival is not stored: Redis refuses a time to live of nothing', async () => {
    service.onToken = () => tokenAnswer('token', 0)
    expect(await clientWith(store).getAccessToken()).toBe('token')
    await vi.advanceTimersByTimeAsync(0)
    expect(store.entries.size).toBe(0)
  })

  test('an adopted token is used to its end and never past it', async () => {
    await clientWith(store).getAccessToken()
    await vi.advanceTimersByTimeAsync(1_800_000)
    const second = clientWith(store)
    expect(await second.getAccessToken()).toBe('token-1')
    await vi.advanceTimersByTimeAsync(1_799_999)
    service.onToken = () => new Response('', { status: 503 })
    expect(await second.getAccessToken()).toBe('token-1')
    service.onToken = () => tokenAnswer('token-2')
    await vi.advanceTimersByTimeAsync(1)
    expect(await second.getAccessToken()).toBe('token-2')
  })

  test('the other processes take over the token of a refresh', async () => {
    const first = clientWith(store)
    const second = clientWith(store)
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
    await clientWith(store).getAccessToken()
    await clientWith(store, { clientId: 'other' }).getAccessToken()
    await clientWith(store, { clientId: 'other a', scope: 'b' }).getAccessToken()
    await clientWith(store, { clientId: 'other', scope: 'a b' }).getAccessToken()
    expect(service.tokenRequests).toHaveLength(4)
    const otherTenant = { authUrl: 'https://auth.other.example.com' }
    service.onCall = () => tokenAnswer('token-other')
    expect(await clientWith(store, otherTenant).getAccessToken()).toBe('token-other')
    expect(await clientWith(store, { domain: 'other' }).getAccessToken()).toBe('token-other')
    expect(store.entries.size).toBe(6)
  })

  test('a token that is due for a refresh is not taken over: one that is fetched now serves every process', async () => {
    await clientWith(store).getAccessToken()
    await vi.advanceTimersByTimeAsync(3_300_000)
    expect(await clientWith(store).getAccessToken()).toBe('token-2')
    expect(await clientWith(store).getAccessToken()).toBe('token-2')
    expect(service.tokenRequests).toHaveLength(2)
  })

  test('a stored token that expires before the held one is not taken over', async () => {
    const client = clientWith(store)
    await client.getAccessToken()
    await vi.advanceTimersByTimeAsync(3_300_000)
    const [key = ''] = store.entries.keys()
    const shorter = { accessToken: 'shorter', lifetimeMs: 250_000, expiresAtMs: Date.now() + 249_000 }
    await store.set(key, JSON.stringify(shorter), 249_000)
    await client.getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    expect(await client.getAccessToken()).toBe('token-2')
  })

  test('a rejected token that is still in the store is not taken over again', async () => {
    const store = Object.assign(new NaiveStore(), { set: async () => {} })
    const expiresAtMs = Date.now() + 60_000
    store.get = async () => JSON.stringify({ accessToken: 'revoked', lifetimeMs: 60_000, expiresAtMs })
    service.onCall = rejecting('revoked')
    await clientWith(store).createSubscription(subscription)
    expect(service.calls.map(({ headers }) => headers.get('authorization'))).toEqual([
      'Bearer revoked',
      'Bearer token-1',
    ])
  })

  const holding = (accessToken: string) => ({
    get: () => JSON.stringify({ accessToken, lifetimeMs: 60_000, expiresAtMs: Date.now() + 30_000 }),
    set() {},
  })
  const broken = () => {
    throw new Error('store is down, key token-1')
  }
  test.each([
    ['throws', { get: broken, set: broken }],
    ['holds rubbish', { get: () => '{"accessToken":7}', set() {} }],
    ['holds no JSON', { get: async () => 'rubbish', set() {} }],
    ['holds an object', { get: () => ({}), set() {} }],
    ['holds a token that no header can have', holding('a\r\nb')],
  ])('a store that %s is as good as none', async (_name, store) => {
    const { client, lines } = loggedClientWith(store)
    expect(await client.getAccessToken()).toBe('token-1')
    await client.createSubscription(subscription)
    expect(service.tokenRequests).toHaveLength(1)
    expect(JSON.stringify(lines)).not.toContain('token-1')
  })

  test('a failure of the store is logged; of what it throws, only the name', async () => {
    const fails = async () => {
      throw new RangeError('redis://:passw0rd@cache')
    }
    for (const operation of ['get', 'set'] as const) {
      const tokenCache = Object.assign(new NaiveStore(), { [operation]: fails })
      const { client, linesOf } = loggedClientWith(tokenCache)
      await client.getAccessToken()
      await vi.advanceTimersByTimeAsync(0)
      const fields = { event: 'token-cache.failed', operation, reason: 'RangeError' }
      expect(linesOf('token-cache.failed')).toEqual([
        { level: 'warn', fields, message: 'Token cache failed' },
      ])
    }
  })

  test('a store that parses what it was given is named: each process would request tokens of its own', async () => {
    const parsing = Object.assign(new NaiveStore(), { get: async () => ({ accessToken: 'token-1' }) })
    const { client, linesOf } = loggedClientWith(parsing)
    await client.getAccessToken()
    const reason = 'it returned no text: turn off what parses values (docs/stores.md, Your own)'
    const fields = { event: 'token-cache.failed', operation: 'get', reason }
    expect(linesOf('token-cache.failed')).toEqual([{ level: 'warn', fields, message: 'Token cache failed' }])
  })

  test('a store that never answers holds a token up for a second', async () => {
    const client = clientWith({ get: () => new Promise(() => {}), set() {} })
    const token = client.getAccessToken()
    await vi.advanceTimersByTimeAsync(999)
    expect(service.tokenRequests).toHaveLength(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(await token).toBe('token-1')
  })
})

test('a store is given a time to live in whole milliseconds, because Redis refuses any other', async () => {
  const set = vi.spyOn(store, 'set')
  service.onToken = async () => {
    // A monotonic clock has fractions.
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(now + 0.3)
    return tokenAnswer('token')
  }
  await clientWith(store).getAccessToken()
  await vi.advanceTimersByTimeAsync(0)
  expect(set.mock.calls.map(([, , ttlMs]) => ttlMs)).toEqual([3_600_000])
  vi.restoreAllMocks()
})

test.each([
  [5_999, 'token-1'],
  [6_001, 'token-2'],
  [3_600_000, 'token-2'],
  [-3_600_000, 'token-2'],
])(
  'a token of a minute from a machine whose clock is %i ms ahead: the next process uses %s',
  async (aheadMs, expected) => {
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 60)
    const store = new Map<string, string>()
    await clientWith(store).getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    vi.setSystemTime(Date.now() - aheadMs)
    expect(await clientWith(store).getAccessToken()).toBe(expected)
  },
)
