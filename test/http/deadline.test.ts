/** A `TimeoutError` says what the call was waiting for, how the last attempt failed, and what to do. */
import { createServer } from 'node:http'
import { NotificationClient, type NotificationClientOptions, TimeoutError } from 'notification-subscriber'
import { Agent, buildConnector } from 'undici'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.js'
import { failureOf, refused } from '../support/failure.js'
import { baseUrl, credentials, type FakeService, fakeService, tokenUrl } from '../support/fake-service.js'
import { serving } from '../support/listen.js'
import { expectPage } from '../support/message-page.js'

let service: FakeService
beforeEach(() => {
  service = fakeService()
})
afterEach(() => void vi.useRealTimers())

const timeoutMs = 300
const never = () => new Promise<never>(() => {})
const busy = () => Response.json({ error: 'slow_down' }, { status: 503 })

async function timeoutOf(call: Promise<unknown>): Promise<TimeoutError> {
  const error = await failureOf(call)
  return error instanceof TimeoutError ? error : expect.fail(String(error))
}

interface Case {
  readonly phase: TimeoutError['phase']
  /** The last attempt's failure. */
  readonly cause?: object
  readonly answers?: Partial<FakeService>
  readonly options?: Partial<NotificationClientOptions>
}

const cases: Record<string, Case> = {
  'a token endpoint that does not answer': { phase: 'token', answers: { onToken: never } },
  'a token endpoint that has failed before': {
    phase: 'token',
    cause: { code: 'TOKEN_REQUEST', status: 503, error: 'slow_down', url: tokenUrl },
    answers: { onToken: (_call, count) => (count === 1 ? busy() : never()) },
  },
  'a function of the caller that returns no token': {
    phase: 'token',
    options: { auth: { getAccessToken: never } },
  },
  'a function of the caller that authenticates the client': {
    phase: 'token',
    options: { auth: { ...credentials, clientAuthentication: never } },
  },
  'another token after a rejected one': {
    phase: 'token',
    answers: { onCall: () => new Response('', { status: 401 }) },
    options: { auth: { getAccessToken: vi.fn((): Promise<string> => never()).mockResolvedValueOnce('old') } },
  },
  'an answer': { phase: 'answer', answers: { onCall: never } },
  'an answer after one of 503': {
    phase: 'answer',
    cause: { code: 'API', status: 503 },
    answers: { onCall: (_call, count) => (count === 1 ? busy() : never()) },
  },
  'an answer after a failed connection': {
    phase: 'answer',
    cause: { code: 'CONNECTION', requestSent: false },
    answers: { onCall: (_call, count) => (count === 1 ? refused() : never()) },
  },
}

test('each names what is missing, and how the last attempt failed: the reviewed page', async () => {
  vi.useFakeTimers()
  const messages: Record<string, string> = {}
  for (const [what, { phase, cause, answers, options }] of Object.entries(cases)) {
    service = Object.assign(fakeService(), answers)
    const client = service.client({ timeoutMs, retry: { baseDelayMs: 0 }, ...options })
    const [error] = await Promise.all([
      timeoutOf(client.unsubscribe(7)),
      vi.advanceTimersByTimeAsync(timeoutMs),
    ])
    expect({ what, phase: error.phase, timeoutMs: error.timeoutMs }).toEqual({ what, phase, timeoutMs })
    if (cause === undefined) expect(error.cause).toBeUndefined()
    else expect(error.cause).toMatchObject(cause)
    if (phase === 'answer') expect(service.calls.at(-1)?.signal.aborted).toBe(true)
    messages[what] = error.message
  }
  await expectPage('timeouts', messages)
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
  expect(await call).toMatchObject({
    phase: 'backoff',
    cause: { code: 'API', status: 503 },
    message: expect.stringContaining('shorten the waits with `retry`'),
  })
})

describe('a suspended process that resumes after the time sends nothing: the phase is `connection`', () => {
  /** Timers that are due meanwhile come later. */
  const standStill = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeoutMs + 50)

  test('suspended before the request', async () => {
    const getAccessToken = () => {
      standStill()
      return 'token'
    }
    const fetch = vi.fn(async () => new Response(null, { status: 204 }))
    const client = new NotificationClient({ baseUrl, auth: { getAccessToken }, fetch, timeoutMs })
    expect(await timeoutOf(client.unsubscribe(7))).toMatchObject({ phase: 'connection' })
    expect(fetch).not.toHaveBeenCalled()
  })

  test('suspended while it connects', async () => {
    const handle = vi.fn()
    await using server = await serving(createServer(handle))
    const connect = buildConnector({})
    const dispatcher = new Agent({
      connect: (options, callback) =>
        connect(options, (...result) => {
          standStill()
          callback(...result)
        }),
    })
    const auth = { getAccessToken: () => 'token' }
    const client = new NotificationClient({ baseUrl: `http://${server.host}`, auth, dispatcher, timeoutMs })
    expect(await timeoutOf(client.unsubscribe(7))).toMatchObject({ phase: 'connection' })
    await dispatcher.close()
    expect(handle).not.toHaveBeenCalled()
  })
})
