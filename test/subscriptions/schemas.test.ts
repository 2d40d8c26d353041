import { createSubscriptionInputSchema, InvalidRequestError } from 'notification-subscriber'
import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { failureOf } from '../support/failure.js'
import { type FakeService, fakeService, subscription } from '../support/fake-service.js'

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
    'a URL object with a fragment': { callbackUrl: new URL('https://app.example.com/n#') },
    'a callback URL with one slash': { callbackUrl: 'https:/app.example.com/n' },
    'a callback URL with three slashes': { callbackUrl: 'https:///app.example.com/n' },
    'a callback URL without slashes': { callbackUrl: 'https:app.example.com/n' },
    'a callback URL with its scheme twice': { callbackUrl: 'https://https://app.example.com/n' },
    'a callback URL with a shell template for a host': { callbackUrl: `https://\${HOST}/n` },
    'a callback URL with a template for a host': { callbackUrl: 'https://{{host}}/n' },
    'a callback URL with a template in its path': { callbackUrl: `https://app.example.com/\${TENANT}/n` },
    'a callback URL with quotes instead of backticks': { callbackUrl: `https://localhost:\${PORT}/n` },
    'a callback URL with a spaced template': { callbackUrl: 'https://{{ host }}/n' },
    'a callback URL with a word in braces in its path': { callbackUrl: 'https://app.example.com/{tenant}/n' },
    'a callback URL with a word in braces for a host': { callbackUrl: 'https://{host}.example.com/n' },
    'a callback URL with a word in angle brackets': { callbackUrl: 'https://app.example.com/<tenant>/n' },
    'a callback URL with a name in capitals for a host': { callbackUrl: 'https://YOUR_HOST/n' },
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
    'parameters that are text': { parameters: 'a=b' },
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
    '__proto__ as a name': { parameters: JSON.parse('{"__proto__":"a"}') },
    'a field with a typing error': { callbackURL: 'https://app.example.com' },
  }
  test('each problem is reported with its place and its reason', async () => {
    const problems: Record<string, string> = {}
    for (const [name, change] of Object.entries(refused)) {
      service = fakeService()
      const error = await failureOf(service.client().createSubscription({ ...subscription, ...change }))
      expect(error).toBeInstanceOf(InvalidRequestError)
      const { issues, message } = error as InvalidRequestError
      problems[name] = issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ')
      expect(message).toMatch(/^createSubscription sent nothing: .+\.$/)
      expect(service.tokenRequests).toHaveLength(0)
    }
    expect(problems).toMatchInlineSnapshot(`
      {
        "__proto__ as a name": "parameters.__proto__: is reserved: objects take it for their prototype",
        "a URL object with a fragment": "callbackUrl: must not contain a fragment (#…): it is never sent to a server",
        "a URL object with a template in its path": "callbackUrl: contains \`{{tenant}}\`, which was never filled in",
        "a URL object with null in its host": "callbackUrl: has the host \`app.null.example.com\`: was \`null\` never replaced by its value?",
        "a callback URL beyond ASCII": "callbackUrl: must be written \`https://xn--bcher-kva.example/%C3%A9\`: in another spelling it would be another callback URL to the service",
        "a callback URL in capitals": "callbackUrl: must be written \`https://app.example.com/n\`: in another spelling it would be another callback URL to the service",
        "a callback URL that ends with an escape": "callbackUrl: must not contain a backslash: is it what is left of an escape such as \`\\n\`?",
        "a callback URL that is a number": "callbackUrl: must be a URL",
        "a callback URL with a fragment": "callbackUrl: must not contain a fragment (#…): it is never sent to a server",
        "a callback URL with a line break": "callbackUrl: must not contain white space or control characters",
        "a callback URL with a name in capitals for a host": "callbackUrl: has \`YOUR_HOST\` in its host: was it never replaced by its value?",
        "a callback URL with a name in capitals in its host": "callbackUrl: has \`YOUR_DOMAIN\` in its host: was it never replaced by its value?",
        "a callback URL with a password": "callbackUrl: must not contain a user name or password: addresses are shown in errors",
        "a callback URL with a shell template for a host": "callbackUrl: contains \`\${HOST}\`, which was never filled in (quotes instead of backticks?)",
        "a callback URL with a spaced template": "callbackUrl: contains \`{{ host }}\`, which was never filled in",
        "a callback URL with a template for a host": "callbackUrl: contains \`{{host}}\`, which was never filled in",
        "a callback URL with a template in its path": "callbackUrl: contains \`\${TENANT}\`, which was never filled in (quotes instead of backticks?)",
        "a callback URL with a user name": "callbackUrl: must not contain a user name or password: addresses are shown in errors",
        "a callback URL with a variable for a host": "callbackUrl: has the host \`$host\`: was \`$host\` never replaced by its value?",
        "a callback URL with a word in angle brackets": "callbackUrl: contains \`<tenant>\`, which was never filled in",
        "a callback URL with a word in braces for a host": "callbackUrl: contains \`{host}\`, which was never filled in",
        "a callback URL with a word in braces in its path": "callbackUrl: contains \`{tenant}\`, which was never filled in",
        "a callback URL with an empty label": "callbackUrl: has a host with an empty label: \`app..example.com\`",
        "a callback URL with dots in its path": "callbackUrl: must be written \`https://app.example.com/n\`: in another spelling it would be another callback URL to the service",
        "a callback URL with half a surrogate pair": "callbackUrl: must not contain half a surrogate pair: it cannot be encoded",
        "a callback URL with its default port": "callbackUrl: must be written \`https://app.example.com/n\`: in another spelling it would be another callback URL to the service",
        "a callback URL with its scheme twice": "callbackUrl: has \`https:\` twice",
        "a callback URL with one slash": "callbackUrl: must have two slashes and a host after \`https:\`",
        "a callback URL with quotes instead of backticks": "callbackUrl: contains \`\${PORT}\`, which was never filled in (quotes instead of backticks?)",
        "a callback URL with three slashes": "callbackUrl: must have two slashes and a host after \`https:\`",
        "a callback URL with undefined for a host": "callbackUrl: has the host \`undefined\`: was \`undefined\` never replaced by its value?",
        "a callback URL without slashes": "callbackUrl: must have two slashes and a host after \`https:\`",
        "a callback URL without the slash of an empty path": "callbackUrl: must be written \`https://app.example.com/\`: in another spelling it would be another callback URL to the service",
        "a field with a typing error": ": there is no \`callbackURL\` (did you mean \`callbackUrl\`?)",
        "a header of the request itself": "headers.Authorization: is reserved: it is a header of the request",
        "a name in both kinds": "headers.TOKEN: is a parameter, too: on callbacks both would be the same header",
        "a name that is a form field": "parameters.Username: is reserved: it is a field of the request",
        "a name that is no header name": "parameters.my token: cannot be the name of an HTTP header: letters, digits and !#$%&'*+-.^_\`|~ only",
        "a name twice in different case": "parameters.TOKEN: is given twice: header names are the same in any case",
        "a parameter that breaks callbacks": "parameters.Content-Length: is reserved: as a header it would break the callback",
        "a relative callback URL": "callbackUrl: must be an absolute URL, such as \`https://app.example.com/path\`",
        "a string for a boolean": "recreateIfExists: expected boolean, received string",
        "a type twice": "notificationTypes.2: is listed twice",
        "a username after white space": "usernames.0: must not begin or end with white space",
        "a username before white space": "usernames.0: must not begin or end with white space",
        "a username that is no string": "usernames.0: expected string, received number",
        "a username twice": "usernames.2: is listed twice",
        "a username with a comma": "usernames.1: must not contain a comma: the service reads it as two usernames",
        "a username with a line break inside": "usernames.0: must not contain control characters or line separators",
        "a value beyond ASCII": "parameters.token: has a value that cannot be sent as an HTTP header: visible ASCII only, and spaces or tabs in between",
        "a value that is undefined": "parameters.token: must be text",
        "a value with a line break": "parameters.token: has a value that cannot be sent as an HTTP header: visible ASCII only, and spaces or tabs in between",
        "a value with white space around it": "headers.token: has a value that cannot be sent as an HTTP header: visible ASCII only, and spaces or tabs in between",
        "an empty name": "headers.: cannot be the name of an HTTP header: letters, digits and !#$%&'*+-.^_\`|~ only",
        "an empty username": "usernames.0: must not be empty",
        "an http: callback URL": "callbackUrl: must be an https: URL (for tests on loopback, set \`allowInsecureLoopback\` on the client)",
        "an unknown type": "notificationTypes.0: is the type of a delivered notification: to get it, subscribe to \`behavioral\`",
        "another scheme": "callbackUrl: must be an https: URL",
        "half a surrogate pair": "usernames.0: must not contain half a surrogate pair: it cannot be encoded",
        "headers that are null": "headers: must be an object of names and values",
        "no callback URL": "callbackUrl: must be a URL",
        "no types": "notificationTypes: must name at least one notification type",
        "no users": "usernames: must name at least one user",
        "parameters that are a list": "parameters: must be an object of names and values",
        "parameters that are text": "parameters: must be an object of names and values",
        "several problems at once": "usernames.2: must not be empty; usernames.1: is listed twice; parameters.my token: cannot be the name of an HTTP header: letters, digits and !#$%&'*+-.^_\`|~ only; parameters.my token: has a value that cannot be sent as an HTTP header: visible ASCII only, and spaces or tabs in between; headers.TOKEN: is a parameter, too: on callbacks both would be the same header",
        "types that are no list": "notificationTypes: expected array, received string",
        "usernames with the separators of Unicode": "usernames.0: must not contain control characters or line separators; usernames.1: must not contain control characters or line separators",
        "users that are no list": "usernames: expected array, received string",
      }
    `)
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
  ])('a callback URL goes out alike as text and as a URL: %s', async (callbackUrl) => {
    const client = service.client()
    await client.createSubscription({ ...subscription, callbackUrl })
    await client.createSubscription({ ...subscription, callbackUrl: new URL(callbackUrl) })
    const sent = service.calls.map(({ body }) => new URLSearchParams(body).get('callback_url'))
    expect(sent).toEqual([callbackUrl, callbackUrl])
  })

  test.each([
    'https://app.example.com/%7Btenant%7D/n',
    'https://app.example.com/$tenant/n',
    'https://app.example.com/YOUR_PATH/n?filter={a}',
    'https://my_host.example.com/n',
  ])(
    'a callback URL in the spelling of the URL parser is taken, though it looks like a template: %s',
    (callbackUrl) => {
      expect(createSubscriptionInputSchema.safeParse({ ...subscription, callbackUrl }).success).toBe(true)
    },
  )

  test('the names that are reserved, in any case', async () => {
    const fields = ['NOTIFICATION_TYPE', 'USERNAME', 'CALLBACK_URL', 'RECREATEIFEXISTS']
    const ofRequest = ['ACCEPT', 'ACCEPT-ENCODING', 'AUTHORIZATION', 'USER-AGENT']
    const ofMessage = [
      ...['CONNECTION', 'CONTENT-ENCODING', 'CONTENT-LENGTH', 'CONTENT-TYPE', 'EXPECT', 'HOST', 'KEEP-ALIVE'],
      ...['PROXY-AUTHENTICATE', 'PROXY-AUTHORIZATION', 'PROXY-CONNECTION', 'TE', 'TRAILER'],
      ...['TRANSFER-ENCODING', 'UPGRADE'],
    ]
    const names = [...fields, ...ofRequest, ...ofMessage]
    const values = Object.fromEntries(names.map((name) => [name, 'x']))
    const problemsOf = async (kind: 'parameters' | 'headers') => {
      const call = fakeService()
        .client()
        .createSubscription({ ...subscription, [kind]: values })
      return ((await failureOf(call)) as InvalidRequestError).issues
    }
    const because = (kind: string, reserved: string[], why: string) =>
      reserved.map((name) => ({ path: [kind, name], message: `is reserved: ${why}` }))
    expect(await problemsOf('parameters')).toEqual([
      ...because('parameters', fields, 'it is a field of the request'),
      ...because('parameters', ofMessage, 'as a header it would break the callback'),
    ])
    expect(await problemsOf('headers')).toEqual(
      because('headers', [...ofRequest, ...ofMessage], 'it is a header of the request'),
    )
  })

  test('names that only resemble them are not', async () => {
    const parameters = { accept: 'a', authorization: 'b', 'proxy-user': 'c', tee: 'd', toString: 'e' }
    const headers = { notification_type: 'a', username: 'b', callback_url: 'c', recreateIfExists: 'd' }
    await service.client().createSubscription({ ...subscription, parameters, headers })
    expect(service.calls[0]?.headers.get('authorization')).toBe('Bearer token-1')
    expect(service.calls[0]?.headers.get('username')).toBe('b')
    expect(service.calls[0]?.body).toContain('accept=a&authorization=b&proxy-user=c&tee=d&toString=e')
  })

  test('a value that is refused is not shown', async () => {
    const error = await failureOf(
      fakeService()
        .client()
        .createSubscription({ ...subscription, parameters: { token: 's3cret\n' } }),
    )
    expect(JSON.stringify(error) + String(error)).not.toContain('s3cret')
  })

  test.each([undefined, null, 42, 'text', [], () => {}])('no object at all: %s', async (given) => {
    const client = service.client()
    await expect(client.createSubscription(given as never)).rejects.toBeInstanceOf(InvalidRequestError)
    await expect(client.tryCreateSubscription(given as never)).rejects.toBeInstanceOf(InvalidRequestError)
    await expect(client.updateSubscriptionParameters(1, given as never)).rejects.toBeInstanceOf(
      InvalidRequestError,
    )
    expect(service.tokenRequests).toHaveLength(0)
  })

  test.each([undefined, null, '12', 1.5, Number.NaN, 2 ** 53])(
    'a subscription id that is none: %s',
    async (id) => {
      const error = await failureOf(service.client().unsubscribe(id as never))
      expect(error).toBeInstanceOf(InvalidRequestError)
      expect((error as Error).message).toMatch(/^unsubscribe sent nothing: .+\.$/)
      expect(service.tokenRequests).toHaveLength(0)
    },
  )

  test.each([
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { timeoutMs: 2 ** 31 },
    { signal: 'x' },
    { signal: { aborted: false } },
    { signal: { addEventListener() {} } },
    { timeout: 5 },
    7,
  ])('call options that cannot work: %j', async (options) => {
    const client = service.client()
    await expect(client.createSubscription(subscription, options as never)).rejects.toBeInstanceOf(
      InvalidRequestError,
    )
    await expect(client.getAccessToken(options as never)).rejects.toBeInstanceOf(InvalidRequestError)
    expect(service.tokenRequests).toHaveLength(0)
  })
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
    ['a byte more than 8 KiB, in both kinds', { parameters: size(8 * 1024), headers: { h: '' } }, false],
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
