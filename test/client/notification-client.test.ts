/** design.md, "The client": what holds for every method alike. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { getEventListeners } from 'node:events'
import { inspect } from 'node:util'
import { type CallOptions, NotificationClient, type ResponseSummary } from 'notification-subscriber'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { failureOf, refused } from '../support/failure.js'
import {
  baseUrl,
  credentials,
  type FakeService,
  fakeService,
  subscription,
  tokenAnswer,
} from '../support/fake-service.js'
import { heapUsed } from '../support/heap.js'
import { recordingLogger } from '../support/recording-logger.js'
import { routeOf } from '../support/routes.js'

let service: FakeService
beforeEach(() => {
  service = fakeService()
})
afterEach(() => {
  vi.unstubAllEnvs()
})

type Call = (client: NotificationClient, options?: CallOptions) => Promise<unknown>
const [create, tryCreate, end, update]: [Call, Call, Call, Call] = [
  (client, options) => client.createSubscription(subscription, options),
  (client, options) => client.tryCreateSubscription(subscription, options),
  (client, options) => client.unsubscribe(7, options),
  (client, options) => client.updateSubscriptionParameters(7, { parameters: { token: 'x' } }, options),
]
const calls: [name: string, Call][] = [
  ['createSubscription', create],
  ['tryCreateSubscription', tryCreate],
  ['unsubscribe', end],
  ['updateSubscriptionParameters', update],
  ['getAccessToken', (client) => client.getAccessToken()],
]

describe('a client that is closed', () => {
  test.each(calls)('refuses %s, and says so', async (name, call) => {
    const client = service.client()
    await client.getAccessToken()
    await client.close()
    const message = `${name} sent nothing: the client is closed. Make a new one, or close it later.`
    await expect(call(client)).rejects.toMatchObject({ code: 'CLOSED', message })
    expect(service.tokenRequests).toHaveLength(1)
    expect(service.calls).toHaveLength(0)
  })

  test('waits for the calls under way, whether they succeed or fail', async () => {
    const answer = deferred<Response>()
    service.onCall = () => answer.promise
    const client = service.client()
    const succeeds = client.createSubscription(subscription)
    const fails = client.unsubscribe(1).catch(() => 'failed')
    const order: string[] = []
    const closed = client[Symbol.asyncDispose]().then(() => order.push('closed'))
    void succeeds.then(() => order.push('created'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(order).toEqual([])
    answer.resolve(Response.json({ subscription_id: 1 }, { status: 201 }))
    expect(await succeeds).toEqual({ subscriptionId: 1 })
    await fails
    await closed
    expect(order).toEqual(['created', 'closed'])
  })
})

describe('the stack of an error reaches the line of the caller', () => {
  const never = () => new Promise<Response>(() => {})
  const failures: Record<string, Partial<Pick<FakeService, 'onCall' | 'onToken'>>> = {
    'a status': { onCall: () => new Response('', { status: 418 }) },
    'no connection': { onCall: refused },
    'an answer that cannot be read': { onCall: () => new Response('', { status: 201 }) },
    'no answer in time': { onCall: never },
    'a refused token': { onToken: () => new Response('', { status: 401 }) },
    'no connection for a token': { onToken: refused },
    'no token in time': { onToken: never },
    'a close': {},
  }
  const cases = calls.flatMap(([name, call]) =>
    Object.entries(failures)
      .filter(([, { onCall }]) => name !== 'getAccessToken' || onCall === undefined)
      .filter(([what]) => what !== 'an answer that cannot be read' || name.endsWith('reateSubscription'))
      .map(([what, failure]) => [name, what, call, failure] as const),
  )

  // That of Node.js; the test runner sets a larger one.
  const { stackTraceLimit } = Error
  // A traced call has one line more.
  const channel = 'tracing:notification-subscriber:call:start'
  const ignore = () => {}
  beforeAll(() => {
    Error.stackTraceLimit = 10
    subscribe(channel, ignore)
  })
  afterAll(() => {
    Error.stackTraceLimit = stackTraceLimit
    unsubscribe(channel, ignore)
  })

  test.each(cases)('%s after %s', async (_name, what, call, failure) => {
    Object.assign(service, failure)
    const client = service.client({ retry: false, ...(what.endsWith('in time') && { timeoutMs: 50 }) })
    if (what === 'a close') await client.close()
    const theCaller = async () => {
      await call(client)
    }
    const { stack } = Object(await failureOf(theCaller()))
    expect(stack).toMatch(/ theCaller .*notification-client\.test\.ts/)
  })
})

test('nothing is kept of calls that ended: not by the client, not by a signal that outlives them', async () => {
  const client = new NotificationClient({ baseUrl, auth: { getAccessToken: () => 'token' } })
  const { signal } = new AbortController()
  const call = async () => {
    for (let count = 0; count < 20_000; count += 1) await client.getAccessToken({ signal })
    return heapUsed()
  }
  const before = await call()
  // A promise of a call takes 80 bytes, its deadline 400: kept, they would be at least 1.6 MB.
  expect((await call()) - before).toBeLessThan(800_000)
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  await client.close()
})

test('slashes at the end of baseUrl and authUrl are none of the path', async () => {
  const client = service.client({
    baseUrl: `${baseUrl}//`,
    auth: { ...credentials, authUrl: `${credentials.authUrl}//` },
  })
  await client.unsubscribe(1)
  expect(service.tokenRequests).toHaveLength(1)
  expect(service.calls[0]?.url).toBe(baseUrl + routeOf('unsubscribe', 1).path)
})

test('fromEnv reads the environment of the process, and takes every other option', async () => {
  const basic = { NOTIFICATION_BASE_URL: baseUrl, NOTIFICATION_USERNAME: 'u', NOTIFICATION_PASSWORD: 'p' }
  for (const [name, value] of Object.entries(basic)) vi.stubEnv(name, value)
  service.onCall = () => new Response('', { status: 503 })
  const client = NotificationClient.fromEnv({ fetch: service.fetch, retry: false })
  await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 503 })
  expect(service.calls.map(({ headers }) => headers.get('authorization'))).toEqual([`Basic ${btoa('u:p')}`])
})

describe('onResponse', () => {
  test.each([
    [create, 201],
    [create, 409],
    [tryCreate, 409],
    [end, 204],
    [end, 404],
    [update, 200],
    [update, 400],
  ])('gets the last answer of a call, a success or not: %#', async (call, status) => {
    service.onCall = (_call, count) => {
      const headers = { 'x-request-id': `request-${count}` }
      if (count === 1) return new Response('', { status: 503, headers })
      return status === 201
        ? Response.json({ subscription_id: 1 }, { status, headers })
        : new Response(null, { status, headers })
    }
    const responses: ResponseSummary[] = []
    const onResponse = (each: ResponseSummary) => void responses.push(each)
    await call(service.client(), { retry: { baseDelayMs: 0 }, onResponse }).catch(() => {})
    const response = { status, requestId: 'request-2', attempts: 2, durationMs: expect.any(Number) }
    expect(responses).toEqual([response])
  })

  test('is not called without an answer, nor for a token', async () => {
    service.onCall = refused
    const onResponse = vi.fn()
    const client = service.client({ retry: false })
    await failureOf(end(client, { onResponse }))
    await client.getAccessToken({ onResponse })
    expect(onResponse).not.toHaveBeenCalled()
  })

  test('breaks nothing when it throws, and the log says so', async () => {
    const logger = recordingLogger()
    const onResponse = () => {
      throw new Error('no trace')
    }
    expect(await create(service.client({ logger }), { onResponse })).toEqual({ subscriptionId: 1 })
    const err = expect.objectContaining({ message: 'no trace' })
    const fields = { event: 'on-response.failed', method: 'createSubscription', err }
    expect(logger.lines).toContainEqual(expect.objectContaining({ fields }))
  })
})

describe('headers for a gateway', () => {
  const headers = { 'X-Api-Key': 'k3y-of-the-gateway' }

  test('go with every request to the origin of baseUrl, and with no other', async () => {
    const gateway = 'https://gateway.example.com'
    for (const [authUrl, carried] of [
      [`${gateway}/auth-server`, headers['X-Api-Key']],
      ['https://gateway.example.com:8443', null],
    ] as const) {
      const sent: [string, string | null][] = []
      const client = new NotificationClient({
        baseUrl: `${gateway}/notify`,
        auth: { ...credentials, authUrl },
        headers,
        fetch: async (url, init) => {
          sent.push([new URL(url).pathname, new Headers(init.headers).get('x-api-key')])
          return url.endsWith('/token') ? tokenAnswer('token') : new Response(null, { status: 204 })
        },
      })
      await client.unsubscribe(7)
      await client.updateSubscriptionParameters(7, { parameters: { token: 'x' }, headers: { UserData: 'y' } })
      expect(sent.map(([, key]) => key)).toEqual([carried, headers['X-Api-Key'], headers['X-Api-Key']])
    }
  })

  test('are shown by no error, also if a server sends them back', async () => {
    service.onCall = () => new Response(`bad key ${headers['X-Api-Key']}`, { status: 403 })
    const error = await failureOf(service.client({ headers }).unsubscribe(7))
    expect(inspect(error)).not.toContain(headers['X-Api-Key'])
    const { authUrl } = credentials
    service.onToken = () => Response.json({ error: headers['X-Api-Key'] }, { status: 401 })
    const refusal = await failureOf(service.client({ headers, baseUrl: authUrl }).unsubscribe(7))
    expect(refusal).toMatchObject({ code: 'TOKEN_REQUEST' })
    expect(inspect(refusal)).not.toContain(headers['X-Api-Key'])
  })

  test('blank no answer by a value that is too short for a key, such as a version', async () => {
    const [body, requestId] = ['use 1 of 2', 'req-1']
    service.onCall = () => new Response(body, { status: 400, headers: { 'x-request-id': requestId } })
    const { authUrl } = credentials
    const short = { headers: { 'x-api-version': '1' } }
    expect(await failureOf(service.client(short).unsubscribe(7))).toMatchObject({ body, requestId })
    service.onToken = () => new Response('', { status: 401, headers: { 'x-request-id': requestId } })
    const refusal = await failureOf(service.client({ ...short, baseUrl: authUrl }).unsubscribe(7))
    expect(refusal).toMatchObject({ code: 'TOKEN_REQUEST', requestId })
  })

  test('have names that no header of a call may have', async () => {
    const client = service.client({ headers })
    const input = { parameters: { token: 'x' }, headers: { 'X-API-KEY': 'another' } }
    for (const call of [
      client.createSubscription({ ...subscription, ...input }),
      client.updateSubscriptionParameters(7, input),
    ]) {
      await expect(call).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        issues: [{ path: ['headers', 'X-API-KEY'] }],
      })
    }
    expect(service.calls).toEqual([])
  })
})

describe('the logger (default: silent)', () => {
  const url = `${baseUrl}/end/7`

  test('gets a line for each thing that happens, without the query of an address', async () => {
    service.onCall = (_call, count) => {
      if (count === 1) refused()
      return new Response(null, { status: count === 2 ? 401 : 204 })
    }
    const { lines, ...logger } = recordingLogger()
    const routes = { unsubscribe: { method: 'DELETE', path: '/end/{subscriptionId}?key=value' } } as const
    const client = service.client({ logger, routes, retry: { baseDelayMs: 0 } })
    await client.getAccessToken()
    await client.unsubscribe(7)
    const durationMs = expect.any(Number)
    const request = { method: 'DELETE', url, attempt: 1 }
    const toTokens = { method: 'POST', url: service.tokenRequests[0]?.url, attempt: 1 }
    const tokenRequested = [
      { event: 'request.answered', ...toTokens, status: 200, durationMs },
      { event: 'token.obtained', expiresInMs: expect.any(Number) },
    ]
    const err = expect.objectContaining({ name: 'ConnectionError' })
    expect(lines.map(({ fields }) => fields)).toEqual([
      ...tokenRequested,
      { event: 'request.failed', ...request, durationMs, err },
      { event: 'request.retried', ...request, delayMs: 0 },
      { event: 'request.answered', ...request, attempt: 2, status: 401, durationMs },
      ...tokenRequested,
      { event: 'token.rejected', method: 'DELETE', url },
      { event: 'request.answered', ...request, attempt: 3, status: 204, durationMs },
    ])
  })
})
