import { createSubscriptionInputSchema, InvalidRequestError } from 'notification-subscriber'
import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { failureOf } from '../support/failure.js'
import { type FakeService, fakeService, subscription } from '../support/fake-service.js'
import { expectPage, problemsIn } from '../support/message-page.js'

let service: FakeService
beforeEach(() => {
  service = fakeService()
})

describe('input that is refused before anything is sent', () => {
  const refused: Record<string, object> = {
    'no types': { notificationTypes: [] },
    'types that are no list': { notificationTypes: 'behavioral' },
    'an unknown type': { notificationTypes: ['lowEnergyAgentOpened'] },
    'a type twice': { notificationTypes: ['behavioral', 'call-score', 'behavioral'] },
    'no users': { usernames: [] },
    'users that are no list': { usernames: 'alice' },
    'a username that is no string': { usernames: [7] },
    'a username with a comma': { usernames: ['ok', 'a,b'] },
    'an empty username': { usernames: [''] },
    'a username twice': { usernames: ['a', 'b', 'a'] },
    'a username after white space': { usernames: [' a'] },
    'a username before white space': { usernames: ['a '] },
    'a username with a line break inside': { usernames: ['a\nb'] },
    'usernames with the separators of Unicode': { usernames: ['a\u2028b', 'a\u2029b'] },
    'half a surrogate pair': { usernames: ['a\ud800'] },
    'no callback URL': { callbackUrl: undefined },
    'a callback URL that is a number': { callbackUrl: 7 },
    'an http: callback URL': { callbackUrl: 'http://app.example.com' },
    'another scheme': { callbackUrl: 'ftp://app.example.com' },
    'a relative callback URL': { callbackUrl: '/notifications' },
    'a callback URL with a line break': { callbackUrl: 'https://app.example\n.com' },
    'a callback URL with half a surrogate pair': { callbackUrl: 'https://app.example.com/\ud800' },
    'a callback URL with a user name': { callbackUrl: 'https://u@app.example.com' },
    'a callback URL with a password': { callbackUrl: 'https://:p@app.example.com' },
    'a callback URL without the slash of an empty path': { callbackUrl: 'https://app.example.com' },
    'a callback URL in capitals': { callbackUrl: 'HTTPS://App.example.com/n' },
    'a callback URL with its default port': { callbackUrl: 'https://app.example.com:443/n' },
    'a callback URL with dots in its path': { callbackUrl: 'https://app.example.com/a/../n' },
    'a callback URL beyond ASCII': { callbackUrl: 'https://bücher.example/é' },
    'a callback URL with a fragment': { callbackUrl: 'https://app.example.com/n#frag' },
    'a callback URL with one slash': { callbackUrl: 'https:/app.example.com/n' },
    'a callback URL with its scheme twice': { callbackUrl: 'https://https://app.example.com/n' },
    'a callback URL with a template in its path': { callbackUrl: `https://app.example.com/\${TENANT}/n` },
    'a callback URL with a spaced template': { callbackUrl: 'https://{{ host }}/n' },
    'a callback URL with a word in braces for a host': { callbackUrl: 'https://{host}.example.com/n' },
    'a callback URL with a word in angle brackets': { callbackUrl: 'https://app.example.com/<tenant>/n' },
    'a callback URL with a name in capitals in its host': { callbackUrl: 'https://app.YOUR_DOMAIN:443/n' },
    'a URL object with a template in its path': {
      callbackUrl: new URL('https://app.example.com/{{tenant}}/n'),
    },
    'a callback URL with a variable for a host': { callbackUrl: 'https://$HOST/n' },
    'a callback URL with undefined for a host': { callbackUrl: `https://${undefined}/n` },
    'a URL object with null in its host': { callbackUrl: new URL(`https://app.${null}.example.com/n`) },
    'a callback URL with an empty label': { callbackUrl: 'https://app..example.com/n' },
    'a callback URL that ends with an escape': { callbackUrl: 'https://app.example.com/n\\n' },
    'a string for a boolean': { recreateIfExists: 'true' },
    'parameters that are a list': { parameters: ['a'] },
    'headers that are null': { headers: null },
    'headers as Headers': { headers: new Headers({ tenant: 'a' }) },
    'parameters in a Map': { parameters: new Map([['token', 'a']]) },
    'a value with a line break': { parameters: { token: 'a\r\nb' } },
    'a value beyond ASCII': { parameters: { token: 'é' } },
    'a value with white space around it': { headers: { token: ' a' } },
    'a value that is undefined': { parameters: { token: undefined } },
    'a name that is no header name': { parameters: { 'my token': 'a' } },
    'an empty name': { headers: { '': 'a' } },
    'a name that is a form field': { parameters: { Username: 'a' } },
    'a parameter that breaks callbacks': { parameters: { 'Content-Length': '1' } },
    'a header of the request itself': { headers: { Authorization: 'a' } },
    'a name twice in different case': { parameters: { Token: 'a', TOKEN: 'b' } },
    'a name in both kinds': { parameters: { Token: 'a' }, headers: { TOKEN: 'b' } },
    'several problems at once': {
      usernames: ['a', 'a', ''],
      parameters: { token: 'a', 'my token': 'é' },
      headers: { TOKEN: 'b' },
    },
    'a field with a typing error': { callbackURL: 'https://app.example.com' },
  }
  test('each problem is reported with its place and its reason', async () => {
    const problems: Record<string, string> = {}
    for (const [name, change] of Object.entries(refused)) {
      service = fakeService()
      const error = await failureOf(service.client().createSubscription({ ...subscription, ...change }))
      expect(error).toBeInstanceOf(InvalidRequestError)
      problems[name] = problemsIn(error)
      expect(service.tokenRequests).toHaveLength(0)
    }
    await expectPage('problems-of-input', problems)
  })

  test('a wrong callback URL is refused each time, also between right ones, and in a URL that has changed', () => {
    const url = new URL('https://app.example.com/n')
    const isTaken = (callbackUrl: string | URL) =>
      createSubscriptionInputSchema.safeParse({ ...subscription, callbackUrl }).success
    const wrong = 'http://app.example.com/n'
    expect([isTaken(wrong), isTaken(wrong), isTaken(url), isTaken(wrong), isTaken(url.href)]).toEqual([
      false,
      false,
      true,
      false,
      true,
    ])
    url.protocol = 'http:'
    expect(isTaken(url)).toBe(false)
  })

  test.each([
    'https://app.example.com/',
    'https://app.example.com./n?a=b&c=%20d',
    'https://undefined-behaviour.nullable.example/undefined/null',
    'https://[2001:db8::1]:8443/n',
    'https://xn--bcher-kva.example/%C3%A9',
    'https://app_1.example.com/~a/(b)',
    // In the spelling of the URL parser, though they look like templates.
    'https://app.example.com/%7Btenant%7D/n',
    'https://app.example.com/$tenant/n',
    'https://app.example.com/YOUR_PATH/n?filter={a}',
  ])('a callback URL goes out alike as text and as a URL: %s', async (callbackUrl) => {
    const client = service.client()
    await client.createSubscription({ ...subscription, callbackUrl })
    await client.createSubscription({ ...subscription, callbackUrl: new URL(callbackUrl) })
    const sent = service.calls.map(({ body }) => new URLSearchParams(body).get('callback_url'))
    expect(sent).toEqual([callbackUrl, callbackUrl])
  })

  test('names that only resemble reserved ones are taken', async () => {
    const parameters = { accept: 'a', authorization: 'b', 'proxy-user': 'c', tee: 'd', toString: 'e' }
    const headers = { notification_type: 'a', username: 'b', callback_url: 'c', recreateIfExists: 'd' }
    await service.client().createSubscription({ ...subscription, parameters, headers })
    expect(service.calls[0]?.headers.get('authorization')).toBe('Bearer token-1')
    expect(service.calls[0]?.headers.get('username')).toBe('b')
    expect(service.calls[0]?.body).toContain('accept=a&authorization=b&proxy-user=c&tee=d&toString=e')
  })

  test.each([undefined, null, '12', 1.5, Number.NaN, 2 ** 53])(
    'a subscription id that is none: %s',
    async (id) => {
      const error = await failureOf(service.client().unsubscribe(id as never))
      expect(error).toBeInstanceOf(InvalidRequestError)
      expect(service.tokenRequests).toHaveLength(0)
    },
  )
})

test('the schema of the input is of use as JSON Schema, too: parameters and headers are maps of strings', () => {
  // A URL object has no JSON form.
  const schema = z.toJSONSchema(createSubscriptionInputSchema, { unrepresentable: 'any' })
  const strings = { type: 'object', additionalProperties: { type: 'string' } }
  expect(schema).toMatchObject({
    required: ['notificationTypes', 'usernames', 'callbackUrl'],
    properties: { parameters: strings, headers: strings },
  })
})

describe('too many parameters and headers, which come back as headers of every callback', () => {
  const many = (count: number, prefix = 'p') =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, 'x']))
  const size = (bytes: number) => ({ token: 'x'.repeat(bytes - 'token'.length) })

  test.each([
    ['100 together', { parameters: many(60), headers: many(40, 'h') }, true],
    ['101 together', { parameters: many(60), headers: many(41, 'h') }, false],
    ['8 KiB', { parameters: size(8 * 1024) }, true],
    ['a byte more than 8 KiB', { parameters: size(8 * 1024 + 1) }, false],
    ['a byte more than 8 KiB, in both kinds', { parameters: size(8 * 1024 - 1), headers: { h: 'x' } }, false],
  ])('%s', async (_name, values, isAccepted) => {
    for (const method of ['create', 'update'] as const) {
      service = fakeService()
      service.onCall = () => Response.json({ subscription_id: 1 }, { status: 201 })
      const client = service.client()
      const call =
        method === 'create'
          ? client.createSubscription({ ...subscription, ...values })
          : client.updateSubscriptionParameters(1, values)
      if (isAccepted) await call
      else await expect(call).rejects.toMatchObject({ code: 'INVALID_REQUEST', issues: [{ path: [] }] })
      expect(service.calls).toHaveLength(isAccepted ? 1 : 0)
    }
  })
})

test.each(['', `\${TOKEN}`, 'Bearer null', '<your token>'])(
  'a value that nothing has filled in is refused, because its callbacks would be: %j',
  async (value) => {
    for (const kind of ['parameters', 'headers']) {
      const call = fakeService()
        .client()
        .updateSubscriptionParameters(1, { [kind]: { token: value } })
      await expect(call).rejects.toMatchObject({ issues: [{ path: [kind, 'token'] }] })
    }
  },
)

test.each(['{"team":"a"}', '<team>a</team>', 'a{b}', '{}', 'changeme'])(
  '%s is a value of a parameter',
  async (userdata) => {
    await service.client().createSubscription({ ...subscription, parameters: { userdata } })
    expect(service.calls).toHaveLength(1)
  },
)
