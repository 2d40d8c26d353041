import type { RetryOptions } from 'notification-subscriber'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { failedFetch, networkError, refused } from '../support/failure.js'
import { type FakeService, fakeService, subscription } from '../support/fake-service.js'
import { type LogLine, recordingLogger } from '../support/recording-logger.js'

let service: FakeService
beforeEach(() => {
  vi.useFakeTimers()
  service = fakeService()
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** The waits before repeated requests, as the log has them. */
const waitsIn = (lines: readonly LogLine[]) =>
  lines
    .map(({ fields }) => fields as { event: string; delayMs: number })
    .filter(({ event }) => event === 'request.retried')
    .map(({ delayMs }) => delayMs)

const reset = () => {
  throw failedFetch(networkError({ code: 'ECONNRESET' }))
}
const answer =
  (status: number, headers: Record<string, string> = {}) =>
  () =>
    new Response('', { status, headers })

/** Lets everything happen, in fake time, until the promise is settled. */
async function settled<T>(promise: Promise<T>): Promise<T | unknown> {
  let done = false
  const outcome = promise.then(
    (value) => value,
    (reason: unknown) => reason,
  )
  void outcome.finally(() => {
    done = true
  })
  while (!done) await vi.advanceTimersByTimeAsync(50)
  return outcome
}

const create = { ...subscription, recreateIfExists: false }
const recreate = { ...subscription, recreateIfExists: true }

describe('creating (not idempotent unless recreateIfExists is true)', () => {
  test.each([
    ['no connection was made', create, refused, 3],
    ['429', create, answer(429), 3],
    ['503', create, answer(503), 3],
    ['sent, but reset', create, reset, 1],
    ['sent, but reset', recreate, reset, 3],
    ['500', create, answer(500), 1],
    ['504', recreate, answer(504), 3],
    ['520 of a proxy', create, answer(520), 1],
    ['400', recreate, answer(400), 1],
    ['501', recreate, answer(501), 1],
  ])(
    '%s with recreateIfExists %o: the server sees it as often as is safe',
    async (_name, input, respond, times) => {
      service.onCall = respond
      await settled(service.client().createSubscription(input))
      expect(service.calls).toHaveLength(times)
    },
  )

  test('after a lost attempt the outcome stays unknown if no repeat reaches the server', async () => {
    service.onCall = (_call, count) => (count === 1 ? reset() : refused())
    const error = await settled(service.client().createSubscription(recreate))
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })
})

test.each([refused, reset, answer(500), answer(502), answer(503), answer(504), answer(429)])(
  'token requests, unsubscribe and update (safe to repeat): %o is repeated',
  async (respond) => {
    const ok = service.onToken
    service.onToken = (call, count) => (count < 3 ? respond() : ok(call, count))
    expect(await settled(service.client().getAccessToken())).toBe('token-3')
  },
)

describe('waiting between attempts', () => {
  test.each([
    ['in seconds', () => '9', 9_000],
    // An HTTP date has whole seconds.
    ['as a date', () => new Date(Date.now() + 9_000).toUTCString(), 8_000],
  ])('Retry-After %s is waited out, also beyond the longest backoff', async (_how, retryAfter, atLeastMs) => {
    const ok = service.onCall
    service.onCall = (call, count) =>
      count === 1 ? answer(503, { 'retry-after': retryAfter() })() : ok(call, count)
    const from = performance.now()
    await settled(service.client().createSubscription(create))
    const waitedMs = performance.now() - from
    expect(waitedMs).toBeGreaterThanOrEqual(atLeastMs)
    expect(waitedMs).toBeLessThan(9_100)
  })

  test('backoff has full jitter: any wait up to the bound', async () => {
    const retry = { maxAttempts: 4, baseDelayMs: 1_000, maxDelayMs: 1_500 }
    service.onCall = answer(503)
    const { lines, ...logger } = recordingLogger()
    const client = service.client({ retry, logger, timeoutMs: 60_000 })
    for (let round = 0; round < 30; round++) await settled(client.createSubscription(create))
    const waits = waitsIn(lines)
    expect(waits).toHaveLength(90)
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_500)
    expect(Math.min(...waits)).toBeLessThan(500)
    expect(Math.max(...waits)).toBeGreaterThan(1_000)
  })

  test('the log has the duration of each attempt, and onResponse that of the whole call', async () => {
    service.onCall = async () => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      return answer(503, { 'retry-after': '1' })()
    }
    const { lines, ...logger } = recordingLogger()
    const auth = { username: 'user', password: 'password' }
    await vi.advanceTimersByTimeAsync(1_000)
    const onResponse = vi.fn()
    await settled(service.client({ auth, logger, retry: { maxAttempts: 2 } }).unsubscribe(1, { onResponse }))
    expect(onResponse.mock.calls).toMatchObject([[{ attempts: 2, durationMs: 1_060 }]])
    const answered = lines.map(({ fields }) => fields).filter((fields) => 'status' in fields)
    expect(answered).toMatchObject([1, 2].map((attempt) => ({ attempt, durationMs: 30 })))
  })

  test('the defaults: 3 attempts, 250 ms at most before the second, 8 s at most before any', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const waits = async (retry?: RetryOptions) => {
      service.onCall = answer(503)
      const { lines, ...logger } = recordingLogger()
      await settled(service.client({ retry, logger }).createSubscription(create))
      return waitsIn(lines)
    }
    expect(await waits()).toEqual([250, 500])
    expect(await waits({})).toEqual([250, 500])
    expect(await waits({ maxAttempts: 2 })).toEqual([250])
    expect(await waits({ baseDelayMs: 5_000 })).toEqual([5_000, 8_000])
    expect(await waits({ maxDelayMs: 300 })).toEqual([250, 300])
  })

  test.each([
    ['7', 7_000],
    ['0', 0],
    ['9999999999', 9_999_999_999_000],
    ['99999999999', undefined],
    ['299.997', 299_997],
    ['-1', undefined],
    ['7 s', undefined],
    ['', undefined],
    ['Sat, 21 Nov 2026 12:00:05 GMT', 5_000],
    ['Sat, 21 Nov 2026 11:59:55 GMT', 0],
    ['Sat, 99 Nov 2026 12:00:00 GMT', undefined],
    ['2026-11-21T12:00:05Z', undefined],
  ])('Retry-After: %j is %o ms', async (value, retryAfterMs) => {
    // A date counts from the server's `Date`, because clocks differ.
    vi.setSystemTime('2026-11-21T11:50:00Z')
    const date = 'Sat, 21 Nov 2026 12:00:00 GMT'
    service.onCall = answer(429, { date, 'retry-after': value })
    const error = await settled(service.client({ retry: false }).unsubscribe(1))
    expect(error).toMatchObject({ status: 429, retryAfterMs })
  })
})

describe('`retry` of a single call', () => {
  test('false makes one attempt, whatever the option of the client is', async () => {
    service.onCall = answer(503)
    await settled(service.client().unsubscribe(1, { retry: false }))
    expect(service.calls).toHaveLength(1)
  })

  test('replaces the fields that it names; the client’s option has the others', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    service.onCall = answer(503)
    const { lines, ...logger } = recordingLogger()
    const client = service.client({ retry: { maxAttempts: 4, baseDelayMs: 100, maxDelayMs: 300 }, logger })
    await settled(client.createSubscription(create, { retry: { baseDelayMs: 200, maxAttempts: undefined } }))
    expect(waitsIn(lines)).toEqual([100, 150, 150])
    await settled(client.unsubscribe(1, { retry: { maxAttempts: 2 } }))
    expect(service.calls).toHaveLength(4 + 2)
  })
})

describe('one deadline over everything', () => {
  test('a server that asks to wait longer than the time that is left is not waited for', async () => {
    service.onCall = answer(503, { 'retry-after': '120' })
    const from = performance.now()
    const error = await settled(service.client({ timeoutMs: 5_000 }).createSubscription(create))
    expect(error).toMatchObject({ code: 'API', status: 503, retryAfterMs: 120_000 })
    expect(performance.now() - from).toBeLessThan(1_000)
  })

  test("a caller's abort stops a wait between attempts, with the caller's reason", async () => {
    service.onCall = answer(503, { 'retry-after': '10' })
    const abort = new AbortController()
    const outcome = service.client().createSubscription(create, { signal: abort.signal })
    const caught = outcome.catch((reason: unknown) => reason)
    await vi.advanceTimersByTimeAsync(2_000)
    abort.abort('stop')
    expect(await caught).toBe('stop')
    expect(vi.getTimerCount()).toBe(0)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(service.calls).toHaveLength(1)
  })
})

describe('the id that a server gives a request', () => {
  const idOf = async (headers: Record<string, string>) => {
    service.onCall = () => new Response('', { status: 400, headers })
    const { lines, ...logger } = recordingLogger()
    const error = await settled(service.client({ logger }).unsubscribe(1))
    const { requestId } = error as { requestId?: string }
    const logged = lines.map(({ fields }) => fields).findLast((fields) => 'status' in fields)
    expect(logged).toEqual(
      requestId === undefined
        ? expect.not.objectContaining({ requestId: expect.anything() })
        : expect.objectContaining({ requestId }),
    )
    return requestId
  }

  test.each([
    ['x-request-id', { 'cf-ray': 'd', 'x-correlation-id': 'b', 'x-request-id': 'a' }, 'a'],
    ['x-correlation-id', { 'cf-ray': 'd', 'x-amzn-trace-id': 'c', 'x-correlation-id': 'b' }, 'b'],
    ['x-amzn-trace-id', { 'cf-ray': 'd', 'x-amzn-trace-id': 'Root=1-67891233' }, 'Root=1-67891233'],
    ['cf-ray', { 'cf-ray': '230b030023ae2822-SJC' }, '230b030023ae2822-SJC'],
    ['the next, where one is too long', { 'x-request-id': 'x'.repeat(201), 'cf-ray': 'd' }, 'd'],
    ['the next, where one has a blank inside', { 'x-request-id': 'a b', 'cf-ray': 'd' }, 'd'],
    ['none, where no header is there', {}, undefined],
    ['none, where it is the token', { 'x-request-id': 'token-1' }, undefined],
    ['none, where it looks like a token', { 'x-request-id': 'eyJhbGciOi.eyJzdWIi.c2ln' }, undefined],
  ])('is read from %s', async (_name, headers, id) => {
    expect(await idOf(headers as Record<string, string>)).toBe(id)
  })

  test('is in no log line if it is the token that the same answer issues', async () => {
    const { lines, ...logger } = recordingLogger()
    const access_token = 'opaque/t0ken+value'
    service.onToken = () =>
      Response.json(
        { access_token, token_type: 'Bearer', expires_in: 60 },
        { headers: { 'x-request-id': access_token } },
      )
    await settled(service.client({ logger }).getAccessToken())
    expect(lines).toMatchObject([{ fields: { event: 'request.answered' } }, {}])
    expect(JSON.stringify(lines)).not.toContain(access_token)
  })

  test('is in the errors of the token endpoint and of an unusable answer, too', async () => {
    const headers = { 'x-request-id': 'abc' }
    service.onCall = () => new Response('{}', { status: 201, headers })
    const unusable = await settled(service.client().createSubscription(create))
    expect(unusable).toMatchObject({ code: 'RESPONSE_VALIDATION', requestId: 'abc' })
    service.onToken = () => new Response('', { status: 400, headers })
    expect(await settled(service.client().unsubscribe(1))).toMatchObject({
      code: 'TOKEN_REQUEST',
      requestId: 'abc',
    })
  })
})
