import { inspect } from 'node:util'
import { ConfigurationError, NotificationClient } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { baseUrl, credentials, fakeService, subscription } from '../support/fake-service.js'

function issuesOf(options: unknown) {
  try {
    new NotificationClient(options as never)
  } catch (error) {
    if (error instanceof ConfigurationError)
      return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
    throw error
  }
  return []
}

const working = { baseUrl, auth: credentials }

const { ca } = createLoopbackCertificate()
const brokenCertificate = `${ca}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`

describe('options that cannot work are refused with every problem listed', () => {
  const local = { ...working, allowInsecureLoopback: true }
  const withAuth = (auth: object) => ({ baseUrl, auth: { ...credentials, ...auth } })
  const cache = { get() {}, set() {}, delete() {} }
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  const refused: Record<string, unknown> = {
    'nothing at all': undefined,
    'no auth': { baseUrl },
    'auth that is null': { baseUrl, auth: null },
    'auth that is text': { baseUrl, auth: 'Bearer x' },
    'no address': { auth: credentials },
    'http:': { ...working, baseUrl: 'http://notifications.example.com' },
    'http: for tokens': withAuth({ authUrl: 'http://a.example' }),
    'http: beyond loopback': { ...local, baseUrl: 'http://10.0.0.1' },
    'a host that begins like loopback': { ...local, baseUrl: 'http://127.0.0.1.evil.example' },
    'a host that ends like loopback': { ...local, baseUrl: 'http://evil-localhost' },
    'a host like loopback for tokens': {
      ...local,
      auth: { ...credentials, authUrl: 'http://localhost.evil.example' },
    },
    'another scheme, with loopback allowed': { ...local, baseUrl: 'ftp://localhost' },
    'loopback allowed by something true': {
      ...working,
      baseUrl: 'http://localhost',
      allowInsecureLoopback: 'yes',
    },
    'a query': { ...working, baseUrl: new URL('https://x.example?a=b') },
    'a fragment in the address for tokens': withAuth({ authUrl: 'https://x.example#a' }),
    'a password in the address': { ...working, baseUrl: 'https://:p@x.example' },
    'no URL': { ...working, baseUrl: 'notifications.example.com' },
    'an address that is a number': { ...working, baseUrl: 7 },
    'credentials that are undefined': withAuth({ clientId: undefined, clientSecret: undefined }),
    'empty credentials': withAuth({ clientId: '', clientSecret: '', scope: '', domain: '' }),
    'a colon in a raw client ID': withAuth({ clientId: 'a:b' }),
    'a colon in a user name': { baseUrl, auth: { username: 'a:b', password: 'c' } },
    'a user name without a password': { baseUrl, auth: { username: 'a' } },
    'a password without a user name': { baseUrl, auth: { password: 'a' } },
    'an empty user name and password': { baseUrl, auth: { username: '', password: '' } },
    'control characters': withAuth({ clientId: 'a\tb', clientSecret: 'a\r\nb' }),
    'control characters in a password': { baseUrl, auth: { username: '\u0001a', password: 'a\u007f' } },
    'a domain that climbs the path': withAuth({ domain: '..' }),
    'a domain that stays in the path': withAuth({ domain: '.' }),
    'a domain with half a surrogate pair': withAuth({ domain: 'a\ud800' }),
    'two kinds of auth': withAuth({ getAccessToken: () => 'x' }),
    'two other kinds of auth': { baseUrl, auth: { password: 'a', getAccessToken: () => 'x' } },
    'two more kinds of auth': withAuth({ username: 'a', password: 'b' }),
    'a token that is no function': { baseUrl, auth: { getAccessToken: 'token' } },
    'an unknown encoding': withAuth({ credentialsEncoding: 'base64' }),
    'a cache without get': withAuth({ tokenCache: { ...cache, get: undefined } }),
    'a cache without set': withAuth({ tokenCache: { ...cache, set: undefined } }),
    'a cache without delete': withAuth({ tokenCache: { ...cache, delete: undefined } }),
    'a typing error': { ...working, timeout: 5 },
    'a typing error in auth': withAuth({ clientID: 'x' }),
    'no time': { ...working, timeoutMs: 0 },
    'a timeout beyond what timers take': { ...working, timeoutMs: 2 ** 31 },
    'a timeout that is text': { ...working, timeoutMs: '5' },
    'retry: true': { ...working, retry: true },
    'no attempts': { ...working, retry: { maxAttempts: 0 } },
    'half an attempt': { ...working, retry: { maxAttempts: 1.5 } },
    'negative waits': { ...working, retry: { baseDelayMs: -1, maxDelayMs: -1 } },
    'waits beyond what timers take': { ...working, retry: { baseDelayMs: 2 ** 31, maxDelayMs: 2 ** 31 } },
    'a typing error in retry': { ...working, retry: { attempts: 2 } },
    'a domain with white space around it': withAuth({ domain: 'acme ' }),
    'a client ID with white space around it': withAuth({ clientId: ' subscriber' }),
    'a scope with white space around it': withAuth({ scope: 'a ' }),
    'a user name with white space around it': { baseUrl, auth: { username: 'a ', password: 'b' } },
    'authorities that are a file name': { ...working, ca: '/etc/ssl/corporate.pem' },
    'authorities that are no text': { ...working, ca: [Buffer.from('x')] },
    'authorities of which one is broken': { ...working, ca: brokenCertificate },
    'authorities and a dispatcher': { ...working, ca, dispatcher: { request() {} } },
    'authorities and fetch': { ...working, ca, fetch() {} },
    'a logger that is true': { ...working, logger: true },
    'a header of the request for a gateway': { ...working, headers: { Authorization: 'x' } },
    'a header for a gateway that is not set': { ...working, headers: { 'x-api-key': undefined } },
    'a dispatcher that is none': { ...working, dispatcher: {} },
    'a fetch that is none': { ...working, fetch: {} },
    'dispatcher and fetch': { ...working, dispatcher: { request() {} }, fetch() {} },
    'a logger without debug': { ...working, logger: { ...logger, debug: undefined } },
    'a logger without info': { ...working, logger: { ...logger, info: undefined } },
    'a logger without warn': { ...working, logger: { ...logger, warn: undefined } },
    'a logger without error': { ...working, logger: { ...logger, error: undefined } },
  }

  test('each problem is reported with its place and its reason', () => {
    expect(
      Object.fromEntries(
        Object.entries(refused).map(([name, options]) => [name, issuesOf(options).join('; ')]),
      ),
    ).toMatchInlineSnapshot(`
      {
        "a cache without delete": "auth.tokenCache: must be an object with get, set and delete",
        "a cache without get": "auth.tokenCache: must be an object with get, set and delete",
        "a cache without set": "auth.tokenCache: must be an object with get, set and delete",
        "a client ID with white space around it": "auth.clientId: must not begin or end with white space",
        "a colon in a raw client ID": "auth.clientId: must not contain a colon, which ends the ID in raw credentials; use \`credentialsEncoding: 'form-urlencoded'\`",
        "a colon in a user name": "auth.username: must not contain a colon: Basic credentials end the name there",
        "a dispatcher that is none": "dispatcher: must be an undici Dispatcher",
        "a domain that climbs the path": "auth.domain: must be a realm name",
        "a domain that stays in the path": "auth.domain: must be a realm name",
        "a domain with half a surrogate pair": "auth.domain: must be a realm name",
        "a domain with white space around it": "auth.domain: must not begin or end with white space",
        "a fetch that is none": "fetch: must be a fetch function",
        "a fragment in the address for tokens": "auth.authUrl: must not contain a query or a fragment: paths are added to it",
        "a header for a gateway that is not set": "headers.x-api-key: must be text",
        "a header of the request for a gateway": "headers.Authorization: is reserved: it is a header of the request",
        "a host like loopback for tokens": "auth.authUrl: must be an https: URL: http: is allowed on loopback only",
        "a host that begins like loopback": "baseUrl: must be an https: URL: http: is allowed on loopback only",
        "a host that ends like loopback": "baseUrl: must be an https: URL: http: is allowed on loopback only",
        "a logger that is true": "logger: must be a logger with debug, info, warn and error, or false",
        "a logger without debug": "logger: must be a logger with debug, info, warn and error, or false",
        "a logger without error": "logger: must be a logger with debug, info, warn and error, or false",
        "a logger without info": "logger: must be a logger with debug, info, warn and error, or false",
        "a logger without warn": "logger: must be a logger with debug, info, warn and error, or false",
        "a password in the address": "baseUrl: must not contain a user name or password: addresses are shown in errors",
        "a password without a user name": "auth.username: expected string, received undefined",
        "a query": "baseUrl: must not contain a query or a fragment: paths are added to it",
        "a scope with white space around it": "auth.scope: must not begin or end with white space",
        "a timeout beyond what timers take": "timeoutMs: expected number to be <=2147483647",
        "a timeout that is text": "timeoutMs: expected number, received string",
        "a token that is no function": "auth.getAccessToken: must be a function that returns an access token",
        "a typing error": ": there is no \`timeout\` (did you mean \`timeoutMs\`?)",
        "a typing error in auth": "auth: has no \`clientID\` (did you mean \`clientId\`?)",
        "a typing error in retry": "retry: has no \`attempts\` (did you mean \`maxAttempts\`?)",
        "a user name with white space around it": "auth.username: must not begin or end with white space",
        "a user name without a password": "auth.password: expected string, received undefined",
        "an address that is a number": "baseUrl: must be a URL",
        "an empty user name and password": "auth.username: must not be empty; auth.password: must not be empty",
        "an unknown encoding": "auth.credentialsEncoding: expected one of "raw"|"form-urlencoded"",
        "another scheme, with loopback allowed": "baseUrl: must be an https: URL",
        "auth that is null": "auth: must be client credentials, { username, password } or { getAccessToken }",
        "auth that is text": "auth: must be client credentials, { username, password } or { getAccessToken }",
        "authorities and a dispatcher": "ca: cannot be used together with \`dispatcher\` or \`fetch\`: these have authorities of their own",
        "authorities and fetch": "ca: cannot be used together with \`dispatcher\` or \`fetch\`: these have authorities of their own",
        "authorities of which one is broken": "ca: has a certificate that cannot be read, number 2",
        "authorities that are a file name": "ca: must be certificates as text in PEM (-----BEGIN CERTIFICATE-----), not the name of a file: read the file first",
        "authorities that are no text": "ca: must be text in PEM",
        "control characters": "auth.clientId: must not contain control characters; auth.clientSecret: must not contain control characters",
        "control characters in a password": "auth.username: must not contain control characters; auth.password: must not contain control characters",
        "credentials that are undefined": "auth.clientId: expected string, received undefined; auth.clientSecret: expected string, received undefined",
        "dispatcher and fetch": "fetch: cannot be used together with \`dispatcher\`: requests go through one of them",
        "empty credentials": "auth.domain: must not be empty; auth.clientId: must not be empty; auth.clientSecret: must not be empty; auth.scope: must not be empty",
        "half an attempt": "retry.maxAttempts: expected int, received number",
        "http:": "baseUrl: must be an https: URL (for tests on loopback, set \`allowInsecureLoopback\` on the client)",
        "http: beyond loopback": "baseUrl: must be an https: URL: http: is allowed on loopback only",
        "http: for tokens": "auth.authUrl: must be an https: URL (for tests on loopback, set \`allowInsecureLoopback\` on the client)",
        "loopback allowed by something true": "baseUrl: must be an https: URL (for tests on loopback, set \`allowInsecureLoopback\` on the client); allowInsecureLoopback: expected boolean, received string",
        "negative waits": "retry.baseDelayMs: expected number to be >=0; retry.maxDelayMs: expected number to be >=0",
        "no URL": "baseUrl: must be an absolute URL, such as \`https://app.example.com/path\`",
        "no address": "baseUrl: must be a URL",
        "no attempts": "retry.maxAttempts: expected number to be >0",
        "no auth": "auth: must be client credentials, { username, password } or { getAccessToken }",
        "no time": "timeoutMs: expected number to be >0",
        "nothing at all": ": expected object, received undefined",
        "retry: true": "retry: must be an object or false",
        "two kinds of auth": "auth: must be one kind of credentials, not \`getAccessToken\` and another",
        "two more kinds of auth": "auth: has no \`authUrl\`, no \`domain\`, no \`clientId\`, no \`clientSecret\`, only \`username\`, \`password\`",
        "two other kinds of auth": "auth: must be one kind of credentials, not \`getAccessToken\` and another",
        "waits beyond what timers take": "retry.baseDelayMs: expected number to be <=2147483647; retry.maxDelayMs: expected number to be <=2147483647",
      }
    `)
  })

  test('the message shows the first five problems', () => {
    const options = { retry: 1, timeoutMs: 0, logger: 1, fetch: 1, routes: 1, baseUrl: 1, auth: {} }
    expect(() => new NotificationClient(options as never)).toThrowErrorMatchingInlineSnapshot(
      `[ConfigurationError: NotificationClient cannot be made from these options: \`baseUrl\` must be a URL; \`auth.authUrl\` must be a URL; \`auth.domain\`: expected string, received undefined; \`auth.clientId\`: expected string, received undefined; \`auth.clientSecret\`: expected string, received undefined; and 5 more.]`,
    )
    const { routes: _routes, auth: _auth, ...five } = options
    expect(
      () => new NotificationClient({ ...five, auth: { getAccessToken: () => 'x' } } as never),
    ).toThrowErrorMatchingInlineSnapshot(
      `[ConfigurationError: NotificationClient cannot be made from these options: \`baseUrl\` must be a URL; \`fetch\` must be a fetch function; \`timeoutMs\`: expected number to be >0; \`retry\` must be an object or false; \`logger\` must be a logger with debug, info, warn and error, or false.]`,
    )
  })

  const known =
    '`baseUrl`, `auth`, `ca`, `dispatcher`, `fetch`, `timeoutMs`, `retry`, `logger`, `headers`, `routes`, `allowInsecureLoopback`'
  test.each([
    ['a\r\n\u0000b\u2028c', `there is no \`a b c\`, only ${known}`],
    ['k'.repeat(100), `there is no \`${'k'.repeat(100)}\`, only ${known}`],
    ['k'.repeat(101), `there is no \`${'k'.repeat(100)}…\`, only ${known}`],
    ['k'.repeat(9_999), `there is no \`${'k'.repeat(100)}…\`, only ${known}`],
  ])('a problem is reported on one line of bounded length: %#', (key, problem) => {
    expect(() => new NotificationClient({ ...working, [key]: 1 } as never)).toThrow(
      new ConfigurationError(`NotificationClient cannot be made from these options: ${problem}.`, {
        issues: [expect.objectContaining({ path: [] })],
      }),
    )
  })

  test('the message names them all and shows no value', () => {
    expect(
      () => new NotificationClient({ baseUrl: 'x', auth: { ...credentials, clientSecret: 's3cret\n' } }),
    ).toThrow(/`baseUrl` .*`auth\.clientSecret` /)
    expect(
      () => new NotificationClient({ baseUrl: 'x', auth: { ...credentials, clientSecret: 's3cret\n' } }),
    ).not.toThrow(/s3cret/)
  })
})

describe('options that work', () => {
  test.each([
    working,
    { baseUrl: new URL(baseUrl), auth: { ...credentials, authUrl: new URL(credentials.authUrl) } },
    { baseUrl: 'http://localhost:8080', auth: { username: 'u', password: 'p' }, allowInsecureLoopback: true },
    { baseUrl: 'http://[::1]:8080', auth: { username: 'u', password: 'p' }, allowInsecureLoopback: true },
    { baseUrl: 'http://127.255.0.1', auth: { username: 'u', password: 'p' }, allowInsecureLoopback: true },
    { ...working, logger: console, retry: false, timeoutMs: 1, routes: {} },
    { ...working, logger: false, ca: `# corporate\n${ca}${ca}` },
    { baseUrl: 'HTTPS://Notifications.Example.com:443//', auth: credentials },
    { ...working, retry: {}, timeoutMs: 2 ** 31 - 1 },
    { ...working, retry: { maxAttempts: 1, baseDelayMs: 0, maxDelayMs: 0 } },
    { ...working, retry: { baseDelayMs: 2 ** 31 - 1, maxDelayMs: 2 ** 31 - 1 } },
    { ...working, routes: { unsubscribe: {}, update: { method: 'POST', path: '/{subscriptionId}~!' } } },
    { baseUrl, auth: { ...credentials, domain: '...', clientSecret: 'a:ü ' } },
    { baseUrl, auth: { ...credentials, clientId: 'a:b', credentialsEncoding: 'form-urlencoded' } },
    { baseUrl, auth: { ...credentials, scope: 'a', tokenCache: new Map() } },
    { baseUrl, auth: { getAccessToken: () => 'x', others: 'are welcome' } },
    { ...working, dispatcher: undefined, fetch: undefined, timeoutMs: undefined, retry: undefined },
  ])('%#', (options) => {
    expect(issuesOf(options)).toEqual([])
  })

  test('allowInsecureLoopback also lets callbacks come by http: to loopback', async () => {
    const service = fakeService()
    const local = { ...subscription, callbackUrl: 'http://127.0.0.1:3000/notifications' }
    await expect(service.client().createSubscription(local)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
    await service.client({ allowInsecureLoopback: true }).createSubscription(local)
    expect(service.calls).toHaveLength(1)
  })
})

describe('nothing secret is printed', () => {
  test('by console.log(client) and JSON.stringify', async () => {
    const client = fakeService().client()
    const token = await client.getAccessToken()
    const shown = inspect(client, { depth: null, showHidden: true, getters: true }) + JSON.stringify(client)
    expect(shown).not.toContain(credentials.clientSecret)
    expect(shown).not.toContain(token)
  })

  test('and a logger that throws breaks nothing', async () => {
    const broken = () => {
      throw new Error('disk full')
    }
    const logger = { debug: broken, info: broken, warn: broken, error: broken }
    await expect(fakeService().client({ logger }).createSubscription(subscription)).resolves.toEqual({
      subscriptionId: 1,
    })
  })
})
