/** A layer that throws on an error status has got an answer: it counts like one that was returned. */
import { NotificationClient, type NotificationClientOptions } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { Agent, interceptors } from 'undici'
import { describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import { baseUrl, subscription } from '../support/fake-service.js'

const body = '{"message":"username alice is unknown"}'
const headers = { 'content-type': 'application/json', 'retry-after': '7' }

/** A Response whose body has been read. */
function read(status: number): Response {
  return Object.defineProperty(new Response('', { status, headers }), 'bodyUsed', { value: true })
}

/** What the layers throw. */
const thrown: Record<string, (status: number) => object> = {
  'ky, whose body is unread': (status) => ({ response: new Response(body, { status, headers }) }),
  'ofetch, which has read the body': (status) => {
    return { response: Object.assign(read(status), { _data: JSON.parse(body) }), statusCode: status }
  },
  axios: (status) => ({ code: 'ERR_BAD_REQUEST', response: { status, headers, data: JSON.parse(body) } }),
  got: (status) => ({ code: 'ERR_NON_2XX_3XX_RESPONSE', response: { statusCode: status, headers, body } }),
  'a layer around axios': (status) => ({ cause: { response: { status, headers, data: JSON.parse(body) } } }),
  superagent: (status) => ({ status, response: { status, headers, text: body, body: {} } }),
  'wretch, which has read the body': (status) => ({ status, text: body, response: read(status) }),
  'ky 2': (status) => ({ data: JSON.parse(body), response: read(status) }),
  "Azure's pipeline": (status) => ({
    statusCode: status,
    response: { status, headers: new Map(Object.entries(headers)), bodyAsText: body },
  }),
  bytes: (status) => ({ response: { status, headers, data: Buffer.from(body) } }),
  'an ArrayBuffer': (status) => ({
    response: { status, headers, data: new TextEncoder().encode(body).buffer },
  }),
  'a Response': (status) => new Response(body, { status, headers }),
  'a plain statusCode': (status) => ({ statusCode: status, headers, body }),
  'a plain status': (status) => ({ status, headers, body }),
}

describe.each(Object.entries(thrown))('%s', (_name, errorOf) => {
  const client = (status: number, options: Partial<NotificationClientOptions> = {}) =>
    new NotificationClient({
      baseUrl,
      auth: { getAccessToken: () => 'token' },
      retry: false,
      fetch: async () => {
        const error = errorOf(status)
        throw error instanceof Response ? error : Object.assign(new Error('bad status'), error)
      },
      ...options,
    })

  test('409 is a conflict, 400 an ApiError with its body, 502 an unknown outcome', async () => {
    expect(await failureOf(client(409).createSubscription(subscription))).toMatchObject({
      code: 'SUBSCRIPTION_CONFLICT',
      body,
      retryAfterMs: 7_000,
    })
    expect(await failureOf(client(400).createSubscription(subscription))).toMatchObject({ status: 400, body })
    expect(await failureOf(client(502).createSubscription(subscription))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: { status: 502, body },
    })
  })
})

const retry = interceptors.retry({ maxRetries: 0, methods: ['POST'], statusCodes: [409] })
test.each([
  ['responseError', interceptors.responseError(), expect.stringContaining('duplicate_subscription')],
  // What it throws has no body.
  ['retry', retry, ''],
])("undici's interceptor %s", async (_name, interceptor, body) => {
  await using emulator = await startEmulator()
  const agent = new Agent({ connect: { ca: emulator.ca } })
  const dispatcher = agent.compose(interceptor)
  const { baseUrl: origin, auth } = emulator.clientOptions
  await using client = new NotificationClient({ baseUrl: origin, auth, dispatcher, retry: false })
  await client.createSubscription(subscription)
  expect(await failureOf(client.createSubscription(subscription))).toMatchObject({
    code: 'SUBSCRIPTION_CONFLICT',
    body,
  })
  await agent.close()
})

test('an error without a status is a broken connection', async () => {
  const fetch = () => Promise.reject(Object.assign(new Error('?'), { statusCode: 'no', response: {} }))
  const client = new NotificationClient({ baseUrl, auth: { getAccessToken: () => 'x' }, retry: false, fetch })
  expect(await failureOf(client.unsubscribe(1))).toMatchObject({ code: 'CONNECTION' })
})
