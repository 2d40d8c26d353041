/** What a `fetch` is given, and what is read of its answers. */
import { type FetchLike, NotificationClient } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { failureOf } from '../support/failure.js'
import { baseUrl, fakeService, subscription } from '../support/fake-service.js'

const auth = { getAccessToken: () => 'token' }

describe('a fetch', () => {
  test('is called without a receiver, with the request and nothing else', async () => {
    const calls: [unknown, string, object][] = []
    const fetch: FetchLike = async function (this: unknown, url, { signal, ...init }) {
      expect(signal).toBeInstanceOf(AbortSignal)
      calls.push([this, url, init])
      return new Response(null, { status: 204 })
    }
    const client = new NotificationClient({ baseUrl, auth, fetch })
    await client.unsubscribe(7)
    await client.updateSubscriptionParameters(7, { parameters: { token: 'x' } })
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      authorization: 'Bearer token',
      'user-agent': `notification-subscriber/${packageJson.version}`,
    }
    const url = `${baseUrl}/api/subscriptions/7`
    expect(calls).toStrictEqual([
      [undefined, url, { method: 'DELETE', headers, redirect: 'manual' }],
      [
        undefined,
        url,
        {
          method: 'PUT',
          headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
          body: 'token=x',
          redirect: 'manual',
        },
      ],
    ])
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['text', 'created'],
    ['an object', {}],
    ['a status that is no number', { status: '201', text: async () => '{"subscription_id":7}' }],
    ['the status 0 of a redirect that a browser hides', { status: 0, text: async () => '' }],
  ])('that resolves with %s leaves the outcome of a create unknown', async (_name, answer) => {
    const fetch = async () => answer as Response
    const client = new NotificationClient({ baseUrl, auth, fetch })
    const error = await failureOf(client.createSubscription(subscription))
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { code: 'CONNECTION', requestSent: true } })
  })

  test("gets a caller's abort, with the caller's reason", async () => {
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
})
