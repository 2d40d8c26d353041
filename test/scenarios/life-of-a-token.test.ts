/** Tokens of client credentials: when they are requested, shared, refreshed and given up (docs/client.md, Tokens). */
import { ConnectionError, type NotificationClient } from 'notification-subscriber'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { type FakeService, fakeService, subscription, tokenAnswer } from '../support/fake-service.js'
import { type LogLine, recordingLogger } from '../support/recording-logger.js'

let service: FakeService
let client: NotificationClient
beforeEach(() => {
  vi.useFakeTimers()
  service = fakeService()
  client = service.client()
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const isFailedRefresh = ({ fields }: LogLine) => 'event' in fields && fields.event === 'token.refresh-failed'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

describe('one token request for all calls (docs/service.md, Endpoints)', () => {
  test('1,000 concurrent creates on a cold client make one token request, whatever their time limits', async () => {
    const calls = Array.from({ length: 1_000 }, (_, index) =>
      client.createSubscription(subscription, { timeoutMs: 20_000 + index }),
    )
    const created = await Promise.all(calls)
    expect(service.tokenRequests).toHaveLength(1)
    expect(service.calls).toHaveLength(1_000)
    expect(new Set(created.map(({ subscriptionId }) => subscriptionId)).size).toBe(1_000)
  })

  test('a failed token request fails every waiting call, and is not remembered', async () => {
    service.onToken = () => Response.json({ error: 'invalid_client' }, { status: 401 })
    const failed = await Promise.allSettled([client.getAccessToken(), client.getAccessToken()])
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(service.tokenRequests).toHaveLength(1)

    service.onToken = () => tokenAnswer('token')
    expect(await client.getAccessToken()).toBe('token')
  })
})

describe('lifetime, expires_in (docs/service.md, Resources)', () => {
  test('ten minutes of calls with tokens of 2 seconds: no call gets an expired token, and refreshes stay few', async () => {
    const issuedAt = new Map<string, number>()
    service.onToken = async (_call, count) => {
      await vi.advanceTimersByTimeAsync(0)
      issuedAt.set(`token-${count}`, performance.now())
      return tokenAnswer(`token-${count}`, 2)
    }
    const tenMinutesMs = 600_000
    for (let elapsedMs = 0; elapsedMs < tenMinutesMs; elapsedMs += 50) {
      const token = await client.getAccessToken()
      const age = performance.now() - (issuedAt.get(token) ?? Number.NaN)
      if (!(age < 2_000)) expect.fail(`${token} was handed out at an age of ${age} ms`)
      await vi.advanceTimersByTimeAsync(50)
    }
    const lifetimesPassed = tenMinutesMs / 2_000
    expect(service.tokenRequests.length).toBeGreaterThanOrEqual(lifetimesPassed)
    expect(service.tokenRequests.length).toBeLessThanOrEqual(1.35 * lifetimesPassed)
  })

  test('age counts from before the token request was sent', async () => {
    service.onToken = async (_call, count) => {
      // The answer takes 8 of the 10 seconds that the token lives.
      await vi.advanceTimersByTimeAsync(8_000)
      return tokenAnswer(`token-${count}`, 10)
    }
    expect(await client.getAccessToken()).toBe('token-1')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await client.getAccessToken()).toBe('token-2')
  })

  test('a token that has expired on arrival is used once by the calls that waited, and is not fetched again and again', async () => {
    service.onToken = async (_call, count) => {
      await vi.advanceTimersByTimeAsync(5_000)
      return tokenAnswer(`token-${count}`, 2)
    }
    expect(await Promise.all([client.getAccessToken(), client.getAccessToken()])).toEqual([
      'token-1',
      'token-1',
    ])
    expect(service.tokenRequests).toHaveLength(1)
    expect(await client.getAccessToken()).toBe('token-2')
  })
})

test('a token that has expired by the wall clock alone, as after the machine has slept, is not used', async () => {
  await client.getAccessToken()
  vi.setSystemTime(Date.now() + 2 * hourMs)
  expect(await client.getAccessToken()).toBe('token-2')
  expect(await client.getAccessToken()).toBe('token-2')
  expect(service.tokenRequests).toHaveLength(2)
})

test.each([-1, 1])('a clock that is set by %i hours fails no call', async (hours) => {
  const issuedSince = new Map<string, number>()
  service.onToken = (_call, count) => {
    issuedSince.set(`Bearer token-${count}`, performance.now())
    return tokenAnswer(`token-${count}`)
  }
  service.onCall = ({ headers }, count) => {
    const since = issuedSince.get(headers.get('authorization') ?? '') ?? Number.NEGATIVE_INFINITY
    return performance.now() - since < hourMs
      ? Response.json({ subscription_id: count }, { status: 201 })
      : new Response('', { status: 401 })
  }
  await client.createSubscription(subscription)
  vi.setSystemTime(Date.now() + hours * hourMs)
  for (let minutes = 0; minutes < 180; minutes += 5) {
    await client.createSubscription(subscription)
    await vi.advanceTimersByTimeAsync(5 * 60_000)
  }
  expect(service.tokenRequests.length).toBeLessThanOrEqual(6)
})

describe('refresh ahead of the end', () => {
  test('the moment of the refresh differs from token to token', async () => {
    const moments = new Set<number>()
    for (let round = 0; round < 20; round++) {
      service = fakeService()
      client = service.client()
      await client.getAccessToken()
      const from = performance.now()
      while (service.tokenRequests.length < 2) {
        await vi.advanceTimersByTimeAsync(10_000)
        await client.getAccessToken()
      }
      const share = (performance.now() - from) / hourMs
      expect(share).toBeGreaterThanOrEqual(0.8)
      expect(share).toBeLessThanOrEqual(0.91)
      moments.add(Math.round(share * 1_000))
    }
    expect(moments.size).toBeGreaterThan(5)
  })

  test('an idle client asks for nothing', async () => {
    await client.getAccessToken()
    await vi.advanceTimersByTimeAsync(dayMs)
    expect(service.tokenRequests).toHaveLength(1)
  })

  test.each([2, 3600])(
    'a token endpoint that is down while a token of %i seconds may be refreshed costs callers nothing',
    async (seconds) => {
      service.onToken = (_call, count) => tokenAnswer(`token-${count}`, seconds)
      await client.getAccessToken()
      service.onToken = () => new Response('down', { status: 503 })
      const steps = 500
      for (let step = 1; step < steps; step++) {
        await vi.advanceTimersByTimeAsync((seconds * 1_000) / steps)
        expect(await client.getAccessToken()).toBe('token-1')
      }
      const triesWhileDown = service.tokenRequests.length - 1
      expect(triesWhileDown).toBeGreaterThanOrEqual(2)
      expect(triesWhileDown).toBeLessThanOrEqual(15)

      service.onToken = () => tokenAnswer('token-after', seconds)
      await vi.advanceTimersByTimeAsync((seconds * 1_000) / steps)
      expect(await client.getAccessToken()).toBe('token-after')
    },
  )

  test('a refresh that hangs is given up after the time that a call has', async () => {
    const { lines, ...logger } = recordingLogger()
    const client = service.client({ logger, timeoutMs: 30_000 })
    await client.getAccessToken()
    service.onToken = () => new Promise(() => {})
    await vi.advanceTimersByTimeAsync(0.9 * hourMs)
    // All calls share one refresh, which fails once.
    for (let call = 0; call < 3; call += 1) await client.getAccessToken()
    await vi.advanceTimersByTimeAsync(29_999)
    expect(lines.filter(isFailedRefresh)).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(lines.filter(isFailedRefresh).map(({ fields }) => fields)).toMatchObject([
      { err: { code: 'TIMEOUT' } },
    ])
  })
})

describe('a token endpoint that does not answer', () => {
  test('delays no call while the token is valid; afterwards calls request a token beside the hanging refresh', async () => {
    const client = service.client({ timeoutMs: 30_000 })
    await client.getAccessToken()
    const refresh = deferred<Response>()
    service.onToken = () => refresh.promise
    await vi.advanceTimersByTimeAsync(hourMs - 1_000)
    expect(await client.getAccessToken()).toBe('token-1')
    await vi.advanceTimersByTimeAsync(1_000)
    service.onToken = () => tokenAnswer('token-own')
    expect(await Promise.all([client.getAccessToken(), client.getAccessToken()])).toEqual([
      'token-own',
      'token-own',
    ])
    expect(service.tokenRequests).toHaveLength(3)
    refresh.resolve(tokenAnswer('token-late', 1))
    await vi.advanceTimersByTimeAsync(0)
    expect(await client.getAccessToken()).toBe('token-own')
  })

  test('a call that waits for the request of an earlier one has the whole of its own time', async () => {
    service.onToken = (_call, count) => (count === 1 ? new Promise(() => {}) : tokenAnswer('token-2'))
    const client = service.client({ timeoutMs: 1_000 })
    const first = client.getAccessToken()
    const failed = expect(first).rejects.toMatchObject({ code: 'TIMEOUT' })
    await vi.advanceTimersByTimeAsync(950)
    const second = client.getAccessToken()
    await vi.advanceTimersByTimeAsync(50)
    await failed
    expect(await second).toBe('token-2')
  })

  test('a token request ends with the time of the call that began it', async () => {
    service.onToken = () => new Promise(() => {})
    const client = service.client({ timeoutMs: 100 })
    await vi.advanceTimersByTimeAsync(1_000)
    const call = expect(client.getAccessToken({ timeoutMs: 300 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    await vi.advanceTimersByTimeAsync(299)
    expect(service.tokenRequests[0]?.signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await call
    expect(service.tokenRequests[0]?.signal.aborted).toBe(true)
  })
})

describe('one caller aborts while others wait for the same token', () => {
  test('it alone rejects, with its own reason', async () => {
    const answer = deferred<Response>()
    service.onToken = () => answer.promise
    const abort = new AbortController()
    const leaving = client.getAccessToken({ signal: abort.signal })
    const staying = Array.from({ length: 10 }, () => client.getAccessToken())
    const reason = new Error('the user went away')
    abort.abort(reason)
    await expect(leaving).rejects.toBe(reason)
    answer.resolve(tokenAnswer('token'))
    expect(await Promise.all(staying)).toEqual(Array.from({ length: 10 }, () => 'token'))
    expect(service.tokenRequests).toHaveLength(1)
    expect(service.tokenRequests[0]?.signal.aborted).toBe(false)
  })

  test('an abort in the same tick as the call sends nothing', async () => {
    await client.getAccessToken()
    const abort = new AbortController()
    const call = client.createSubscription(subscription, { signal: abort.signal })
    abort.abort('at once')
    await expect(call).rejects.toBe('at once')
    await expect(client.getAccessToken({ signal: abort.signal })).rejects.toBe('at once')
    expect(service.calls).toHaveLength(0)
  })

  test('many calls may share one signal, without a warning, and all end with it', async () => {
    service.onToken = () => new Promise(() => {})
    const warn = vi.spyOn(process, 'emitWarning')
    const abort = new AbortController()
    const calls = Array.from({ length: 50 }, () => client.getAccessToken({ signal: abort.signal }))
    const settled = Promise.allSettled(calls)
    abort.abort('all')
    expect(await settled).toEqual(Array.from({ length: 50 }, () => ({ status: 'rejected', reason: 'all' })))
    expect(warn).not.toHaveBeenCalled()
  })

  test('if every caller has left and the request fails, no rejection is unhandled', async () => {
    service.onToken = async () => {
      throw new ConnectionError('gone', { requestSent: false })
    }
    const client = service.client({ retry: false })
    const abort = new AbortController()
    const gone = client.getAccessToken({ signal: abort.signal })
    abort.abort('gone')
    await expect(gone).rejects.toBe('gone')
    await vi.advanceTimersByTimeAsync(1_000)
  })
})
