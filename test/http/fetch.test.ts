/** What a caller's `fetch` may be and do. What holds for every transport is in messages.test.ts. */
import assert from 'node:assert'
import { describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription } from '../support/fake-service.js'

const auth = { getAccessToken: () => 'token' }

async function* breakingOff() {
  yield new TextEncoder().encode('what arrived')
  throw new Error('terminated')
}

async function* inText() {
  yield* ['{"a"', ':1}']
}

describe('a fetch may answer with', () => {
  const clientOn = (answer: object) =>
    fakeService().client({
      auth,
      fetch: async () => ({ text: async () => 'from text()', ...answer }) as never,
    })

  test.each([
    ['null', null, ''],
    ['missing', undefined, 'from text()'],
    ['of a kind that cannot be read in parts', {}, 'from text()'],
    ['a string', 'text', 'from text()'],
  ])('a body that is %s', async (_name, body, expected) => {
    const client = clientOn({ status: 400, ...(body !== undefined && { body }) })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: expected, retryAfterMs: undefined })
  })

  test.each<[string, object]>([
    ['headers that are an object', { headers: { 'Retry-After': '7' } }],
    ['headers that are a Map', { headers: new Map([['retry-after', '7']]) }],
    ['headers that are pairs', { headers: [['retry-after', '7']] }],
    ['json() only', { headers: { 'retry-after': '7' }, text: undefined, json: async () => ({ a: 1 }) }],
    ['pieces of text', { headers: { 'retry-after': '7' }, body: inText() }],
  ])('%s', async (_name, answer) => {
    const client = clientOn({ status: 400, text: async () => '{"a":1}', ...answer })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: '{"a":1}', retryAfterMs: 7_000 })
  })

  test.each<[string, object | null]>([
    ['null', null],
    ['with a get that throws', { get: () => assert.fail() }],
    ['with values that are no text', { get: () => 7 }],
  ])('headers that are unusable, which count as none: %s', async (_name, headers) => {
    const client = clientOn({ status: 400, headers })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 400, retryAfterMs: undefined })
  })

  test('199, after which a body that breaks off keeps what arrived, too', async () => {
    const client = clientOn({ status: 199, body: breakingOff() })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 199, body: 'what arrived' })
  })

  test('a Response that a mock gives twice, which is named', async () => {
    const response = new Response('{"subscription_id":7}', { status: 201 })
    const client = fakeService().client({ auth, fetch: async () => response })
    await client.createSubscription(subscription)
    await expect(client.createSubscription(subscription)).rejects.toThrow('the Response was read before')
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['text', 'created'],
    ['an object', {}],
    ['a status that is no number', { status: '201', text: async () => '{"subscription_id":7}' }],
    ['the status 0 of a redirect that a browser hides', { status: 0, text: async () => '' }],
  ])('%s, which leaves the outcome of a create unknown', async (_name, answer) => {
    const client = fakeService().client({ auth, fetch: async () => answer as Response })
    const error = await failureOf(client.createSubscription(subscription))
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { code: 'CONNECTION', requestSent: true } })
  })
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
