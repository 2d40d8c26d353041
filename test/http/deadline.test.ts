/** A `TimeoutError` says what the call was waiting for, how the last attempt failed, and what to do. */
import { NotificationClient, TimeoutError } from 'notification-subscriber'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { eventually } from '../support/eventually.js'
import { failureOf, refused } from '../support/failure.js'
import { baseUrl, type FakeService, fakeService, subscription, tokenUrl } from '../support/fake-service.js'
import { routeOf } from '../support/routes.js'
import { ScriptedServer } from '../support/scripted-server.js'
import { auth } from '../support/secrets.js'

const { tls } = createLoopbackCertificate()

beforeAll(() => void vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0'))
afterAll(() => void vi.unstubAllEnvs())
let service: FakeService
beforeEach(() => {
  service = fakeService()
})
afterEach(() => void vi.useRealTimers())

const timeoutMs = 300

async function timeoutOf(call: Promise<unknown>): Promise<TimeoutError> {
  const error = await failureOf(call)
  return error instanceof TimeoutError ? error : expect.fail(String(error))
}

async function timeoutInFakeTime(call: Promise<unknown>): Promise<TimeoutError> {
  const [error] = await Promise.all([timeoutOf(call), vi.advanceTimersByTimeAsync(timeoutMs)])
  return error
}

describe('the phase `connection`', () => {
  test('is that of a server that accepts TCP and never finishes TLS', async () => {
    await using server = await ScriptedServer.listen(tls, (connection) => connection.stall())
    await using client = new NotificationClient({ baseUrl: server.origin, auth: auth.token, timeoutMs })
    const error = await timeoutOf(client.createSubscription(subscription))
    expect(error).toMatchObject({ phase: 'connection', timeoutMs })
    expect(error.cause).toBeUndefined()
    expect(error.message).toBe(
      'createSubscription took longer than 300 ms: this attempt was not sent, because no connection to ' +
        `${new URL(server.origin).host} was made or became free. ` +
        'If many calls are made at once, make fewer at a time, or allow more time with `timeoutMs`; ' +
        'if not, check the network, or whether a proxy is needed.',
    )
  })

  describe('is that of a suspended process that resumes after the time, and sends nothing', () => {
    /** Timers that are due meanwhile come later. */
    const standStill = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeoutMs + 50)

    test('when the token is there', async () => {
      const requests: string[] = []
      const getAccessToken = () => {
        standStill()
        return 'token'
      }
      const fetch = async (url: string) => {
        requests.push(url)
        return new Response(null, { status: 204 })
      }
      const client = new NotificationClient({ baseUrl, auth: { getAccessToken }, fetch, timeoutMs })
      expect((await timeoutOf(client.unsubscribe(7))).phase).toBe('connection')
      expect(requests).toEqual([])
    })
  })
})

describe('the phase `token`', () => {
  beforeEach(() => void vi.useFakeTimers())

  test('is that of a token endpoint that does not answer, which the message names', async () => {
    service.onToken = () => new Promise(() => {})
    const error = await timeoutInFakeTime(service.client({ timeoutMs }).unsubscribe(1))
    expect(error.phase).toBe('token')
    expect(error.cause).toBeUndefined()
    expect(error.message).toBe(
      `unsubscribe took longer than 300 ms: there was no access token from ${tokenUrl} yet. ` +
        'See whether the authorization server is slow or out of reach, or allow more time with `timeoutMs`.',
    )
    expect(service.calls).toHaveLength(0)
  })

  test('has the last failed attempt at the token endpoint as its cause', async () => {
    service.onToken = (_call, count) =>
      count === 1 ? Response.json({ error: 'slow_down' }, { status: 503 }) : new Promise(() => {})
    const client = service.client({ timeoutMs, retry: { baseDelayMs: 0 } })
    const error = await timeoutInFakeTime(client.getAccessToken())
    expect(error).toMatchObject({
      phase: 'token',
      cause: { code: 'TOKEN_REQUEST', status: 503, error: 'slow_down', url: tokenUrl },
    })
    expect(error.message).toContain(
      `The last attempt before that failed: Could not get an access token: ${tokenUrl} answered 503`,
    )
  })

  test('is that of a function of the caller that returns no token in time', async () => {
    const client = fakeService().client({ auth: { getAccessToken: () => new Promise(() => {}) }, timeoutMs })
    const error = await timeoutInFakeTime(client.unsubscribe(1))
    expect(error.phase).toBe('token')
    expect(error.message).toBe(
      'unsubscribe took longer than 300 ms: `auth.getAccessToken` had not returned a token. ' +
        'See what it waits for, or allow more time with `timeoutMs`.',
    )
  })

  test('comes back when a rejected token has to be replaced', async () => {
    const answerToken = service.onToken
    service.onToken = (call, count) => (count === 1 ? answerToken(call, count) : new Promise(() => {}))
    service.onCall = () => new Response('', { status: 401 })
    const client = service.client({ timeoutMs })
    await client.getAccessToken()
    expect(await timeoutInFakeTime(client.unsubscribe(1))).toMatchObject({ phase: 'token' })
    expect(service.tokenRequests).toHaveLength(2)
  })
})

describe('the phase `answer`', () => {
  beforeEach(() => void vi.useFakeTimers())

  test('is that of a request that was sent and not answered', async () => {
    service.onCall = () => new Promise(() => {})
    const error = await timeoutInFakeTime(service.client({ timeoutMs }).unsubscribe(7))
    expect(error.phase).toBe('answer')
    expect(error.cause).toBeUndefined()
    expect(error.message).toBe(
      `unsubscribe took longer than 300 ms: the request to ${baseUrl}${routeOf('unsubscribe', 7).path} was sent and not answered. ` +
        'The server may be slow: try again later, or allow more time with `timeoutMs`.',
    )
    expect(service.calls[0]?.signal.aborted).toBe(true)
  })

  test('has the attempt before as its cause, be it an answer or a connection that failed', async () => {
    for (const [first, cause] of [
      [() => new Response('later', { status: 503 }), { code: 'API', status: 503, body: 'later' }],
      [refused, { code: 'CONNECTION', requestSent: false }],
    ] as const) {
      service = fakeService()
      service.onCall = (_call, count) => (count === 1 ? first() : new Promise(() => {}))
      const client = service.client({ timeoutMs, retry: { baseDelayMs: 0 } })
      const error = await timeoutInFakeTime(client.unsubscribe(7))
      expect(error).toMatchObject({ phase: 'answer', cause })
      expect(error.message).toContain(
        ` The last attempt before that failed: ${(error.cause as Error).message}`,
      )
    }
  })

  test('is that of a create inside an OutcomeUnknownError', async () => {
    service.onCall = () => new Promise(() => {})
    const call = service.client({ timeoutMs }).createSubscription(subscription)
    const [error] = await Promise.all([failureOf(call), vi.advanceTimersByTimeAsync(timeoutMs)])
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { code: 'TIMEOUT', phase: 'answer' } })
  })
})

test('the phase `backoff` is that of the wait before another attempt', async () => {
  // The monotonic clock stays real: for it no time passes, so that the wait seems to fit into the time that is left.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  service.onCall = async () => {
    await vi.advanceTimersByTimeAsync(900)
    return new Response('', { status: 503, headers: { 'retry-after': '1' } })
  }
  const call = timeoutOf(service.client({ timeoutMs: 1_500 }).unsubscribe(7))
  await eventually(() => expect(service.calls).toHaveLength(1))
  await vi.advanceTimersByTimeAsync(700)
  const error = await call
  expect(error).toMatchObject({ phase: 'backoff', cause: { code: 'API', status: 503 } })
  expect(error.message).toMatch(
    `unsubscribe took longer than 1500 ms: another attempt at ${baseUrl}${routeOf('unsubscribe', 7).path} was about to follow. ` +
      'Try again later, or allow more time with `timeoutMs`, or shorten the waits with `retry`. The last attempt before that failed: ',
  )
})

test('a signal without a reason, as some polyfills have, ends the call with an AbortError', async () => {
  // No EventTarget of Node.js, which would warn of many listeners.
  let abort = () => {}
  const addEventListener = (_type: string, listener: () => void) => {
    abort = listener
  }
  const polyfill = { aborted: false, addEventListener, removeEventListener() {} } as unknown as AbortSignal
  const failed = failureOf(
    new NotificationClient({
      baseUrl: 'https://notifications.example.com',
      auth: { getAccessToken: () => new Promise<string>(() => {}) },
    }).unsubscribe(1, { signal: polyfill }),
  )
  abort()
  expect(await failed).toMatchObject({ name: 'AbortError' })
})
