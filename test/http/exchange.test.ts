/** What every transport is given, and what is read of its answers. */
import { gzipSync } from 'node:zlib'
import type { NotificationClientOptions } from 'notification-subscriber'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { failureOf } from '../support/failure.js'
import { baseUrl, fakeService, subscription } from '../support/fake-service.js'
import { routeOf } from '../support/routes.js'

const limit = 1024 * 1024
const auth = { getAccessToken: () => 'token' }

const hangs = Symbol('hangs')

interface Answer {
  readonly status: number
  readonly headers?: Record<string, string | string[]>
  /** The pieces of the body. An error breaks it off, and nothing follows after `hangs`. */
  readonly chunks: readonly (Uint8Array | string | Error | typeof hangs)[]
  /** How many pieces were read, the end included, and whether the sender was let go before the end. */
  readonly body: { read: number; isLetGo: boolean }
  /** Gets what the transport is asked for. */
  readonly requests?: object[]
}

function nextOf({ chunks, body }: Answer): Uint8Array | typeof hangs | undefined {
  const chunk = chunks[body.read++]
  if (chunk instanceof Error) throw chunk
  return typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk
}

/** @param signal - lets the sender go, as a real `fetch` does */
function streamOf(answer: Answer, signal?: AbortSignal): AsyncIterable<Uint8Array> {
  signal?.addEventListener('abort', () => {
    answer.body.isLetGo = true
  })
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      const value = nextOf(answer)
      if (value === hangs) return new Promise(() => {})
      return value === undefined ? { done: true, value } : { done: false, value }
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}

const transports: Record<string, (answer: Answer) => Partial<NotificationClientOptions>> = {
  fetch: (answer) => ({
    async fetch(this: unknown, url, { body = null, headers, method, redirect, signal, ...others }) {
      // A browser's `fetch` refuses any `this` but its window.
      expect([this, redirect, others]).toEqual([undefined, 'manual', { cache: 'no-store' }])
      answer.requests?.push({ url, method, headers, body })
      return {
        status: answer.status,
        headers: { get: (name) => [answer.headers?.[name]].flat()[0] ?? null },
        body: streamOf(answer, signal),
        text: () => expect.fail('the body is a stream'),
      }
    },
  }),
  'a dispatcher': (answer) => ({
    dispatcher: {
      request: async ({ body, headers, method, origin, path, signal }) => {
        answer.requests?.push({ url: origin + path, method, headers, body })
        return { statusCode: answer.status, headers: answer.headers ?? {}, body: streamOf(answer, signal) }
      },
    },
  }),
}

describe.each(Object.entries(transports))('over %s', (_name, transport) => {
  /** A client of a service that gives this answer, what it asks for, and what has become of the answer's body. */
  function clientAnswered(status: number, chunks: Answer['chunks'], headers: Answer['headers'] = {}) {
    const body = { read: 0, isLetGo: false }
    const requests: object[] = []
    const routes = { unsubscribe: { method: 'DELETE', path: '/api/{subscriptionId}/end?now=yes' } } as const
    const options = { routes, ...transport({ status, headers, chunks, body, requests }) }
    const client = fakeService().client({ auth, fetch: undefined, retry: false, ...options })
    return { client, requests, body }
  }

  test('the request has address, method, headers and body', async () => {
    const { client, requests } = clientAnswered(204, [])
    await client.unsubscribe(7)
    await client.updateSubscriptionParameters(7, { parameters: { token: 'a b' } })
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      authorization: 'Bearer token',
      'user-agent': `notification-subscriber/${packageJson.version}`,
    }
    expect(requests).toEqual([
      { url: `${baseUrl}/api/7/end?now=yes`, method: 'DELETE', headers, body: null },
      {
        url: baseUrl + routeOf('update', 7).path,
        method: 'PUT',
        headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
        body: 'token=a+b',
      },
    ])
  })

  test.each([
    [{ 'retry-after': ['7', '8'] }, 7_000],
    [{}, undefined],
  ])('of several values of a header the first one is read: %j', async (headers, retryAfterMs) => {
    const { client } = clientAnswered(429, ['bu', 'sy'], headers as Answer['headers'])
    await expect(client.unsubscribe(7)).rejects.toMatchObject({ status: 429, body: 'busy', retryAfterMs })
  })

  test('a body of exactly 1 MiB is read whole, to its end', async () => {
    const end = '{"subscription_id":1}'
    const { client, body } = clientAnswered(201, [' '.repeat(limit - end.length), end])
    await expect(client.createSubscription(subscription)).resolves.toEqual({ subscriptionId: 1 })
    expect(body).toEqual({ read: 3, isLetGo: false })
  })

  test('a longer one is cut off there, and its connection is closed', async () => {
    const { client, body } = clientAnswered(400, ['x'.repeat(limit - 1), 'yz', 'never read'])
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 400 })
    expect(body).toEqual({ read: 2, isLetGo: true })
  })

  test('beyond 1 MiB, a 201 is not usable', async () => {
    const { client } = clientAnswered(201, [' '.repeat(limit), '{"subscription_id":1}'])
    const issues = [{ path: [], message: 'is incomplete or too long' }]
    await expect(client.createSubscription(subscription)).rejects.toMatchObject({ issues })
  })

  test('a body that nobody asked to compress is named, also in an error', async () => {
    const answered = (status: number) =>
      clientAnswered(status, [gzipSync('{"subscription_id":7}')], { 'content-encoding': 'gzip' }).client
    const issues = [{ path: [], message: 'is not JSON: it is encoded as gzip' }]
    const body = '[not read: it is encoded as gzip]'
    await expect(answered(201).createSubscription(subscription)).rejects.toMatchObject({ issues, body })
    const refused = await failureOf(answered(400).createSubscription(subscription))
    expect(refused).toMatchObject({ body, message: expect.stringContaining(`answered 400 (${body})`) })
  })

  const broken = Object.assign(new Error('terminated'), { code: 'UND_ERR_SOCKET' })

  test.each([300, 400, 500])(
    'a body that breaks off after %i keeps what arrived: the status is the answer',
    async (status) => {
      const { client } = clientAnswered(status, ['what arr', 'ived', broken])
      await expect(client.unsubscribe(1)).rejects.toMatchObject({ code: 'API', status, body: 'what arrived' })
    },
  )

  test.each([200, 299])(
    'a body that breaks off after %i is a broken connection: its content is needed',
    async (status) => {
      const { client } = clientAnswered(status, ['{"subscr', broken])
      await expect(client.unsubscribe(1)).rejects.toMatchObject({ code: 'CONNECTION', requestSent: true })
      const creates = clientAnswered(status, [broken]).client
      await expect(creates.createSubscription(subscription)).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        cause: { code: 'CONNECTION' },
      })
    },
  )

  describe('a body that does not end', () => {
    function withFakeTimers() {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      onTestFinished(() => void vi.useRealTimers())
    }

    test.each([300, 400, 500])('after %i is cut off after 2 s: the status is the answer', async (status) => {
      withFakeTimers()
      const { client, body } = clientAnswered(status, ['what arrived', hangs])
      const failure = failureOf(client.unsubscribe(1))
      await vi.advanceTimersByTimeAsync(1_999)
      expect(body.isLetGo).toBe(false)
      await vi.advanceTimersByTimeAsync(1)
      expect(await failure).toMatchObject({ code: 'API', status, body: 'what arrived' })
      expect(body.isLetGo).toBe(true)
    })

    test('after a success is waited for', async () => {
      withFakeTimers()
      const { client } = clientAnswered(201, ['{"subscr', hangs])
      const failure = failureOf(client.createSubscription(subscription))
      await vi.advanceTimersByTimeAsync(30_000)
      expect(await failure).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { phase: 'answer' } })
    })
  })

  test('characters may be split between chunks', async () => {
    const umlaut = new TextEncoder().encode('ü')
    const { client } = clientAnswered(400, [umlaut.subarray(0, 1), umlaut.subarray(1)])
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: 'ü' })
  })
})

const answering = (answer: unknown) =>
  fakeService().client({ auth, retry: false, fetch: async () => answer as Response })

test.each<[string, object, string]>([
  ['null', { body: null }, ''],
  ['missing', {}, 'from text()'],
  ['a string', { body: 'text' }, 'from text()'],
])('a fetch may answer with a body that is %s', async (_name, body, expected) => {
  const client = answering({ status: 400, text: async () => 'from text()', ...body })
  await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: expected, retryAfterMs: undefined })
})

test('a fetch may have decoded the body, and kept the header that says how it was encoded', async () => {
  const headers = new Headers({ 'content-encoding': 'gzip' })
  const client = answering({ status: 201, headers, text: async () => '{"subscription_id":7}' })
  expect(await client.createSubscription(subscription)).toEqual({ subscriptionId: 7 })
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['a status that is no number', { status: '201', text: async () => '{"subscription_id":7}' }],
  ['the status 0 of a redirect that a browser hides', { status: 0, text: async () => '' }],
])('a fetch that answers with %s leaves the outcome of a create unknown', async (_name, answer) => {
  const error = await failureOf(answering(answer).createSubscription(subscription))
  expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { code: 'CONNECTION', requestSent: true } })
})

test("a fetch gets a caller's abort, with the caller's reason", async () => {
  const service = fakeService()
  const abort = new AbortController()
  service.onCall = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('as fetch does')))
      abort.abort('enough')
    })
  await expect(service.client().unsubscribe(1, { signal: abort.signal })).rejects.toBe('enough')
  expect(service.calls[0]?.signal).toMatchObject({ aborted: true, reason: 'enough' })
})
