import { describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription } from '../support/fake-service.js'

const auth = { getAccessToken: () => 'token' }

async function* breakingOff() {
  yield new TextEncoder().encode('what arrived')
  throw new Error('terminated')
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

  test('199, after which a body that breaks off keeps what arrived, too', async () => {
    const client = clientOn({ status: 199, body: breakingOff() })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 199, body: 'what arrived' })
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
