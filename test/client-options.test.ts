import { inspect } from 'node:util'
import { ConfigurationError, NotificationClient } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { baseUrl, credentials, fakeService, subscription } from './support/fake-service.js'

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

describe('options that cannot work are refused with every problem listed', () => {
  test.each([
    ['nothing at all', undefined, [': expected object', 'auth: must be client credentials']],
    ['no auth', { baseUrl }, ['auth: must be']],
    [
      'http:',
      { ...working, baseUrl: 'http://notifications.example.com' },
      ['baseUrl: must be an https: URL'],
    ],
    [
      'http: for tokens',
      { baseUrl, auth: { ...credentials, authUrl: 'http://a.example' } },
      ['auth.authUrl: must be an https'],
    ],
    [
      'http: beyond loopback',
      { ...working, baseUrl: 'http://10.0.0.1', allowInsecureLoopback: true },
      ['baseUrl: '],
    ],
    [
      'a host that looks like loopback',
      { ...working, baseUrl: 'http://127.0.0.1.evil.example', allowInsecureLoopback: true },
      ['baseUrl: '],
    ],
    ['a query', { ...working, baseUrl: 'https://x.example?a=b' }, ['baseUrl: must not contain a query']],
    [
      'a password in the address',
      { ...working, baseUrl: 'https://u:p@x.example' },
      ['baseUrl: must not contain a user'],
    ],
    ['no URL', { ...working, baseUrl: 'notifications.example.com' }, ['baseUrl: must be an absolute URL']],
    [
      'credentials that are undefined',
      { baseUrl, auth: { ...credentials, clientId: undefined, clientSecret: undefined } },
      ['auth.clientId: ', 'auth.clientSecret: '],
    ],
    [
      'empty credentials',
      { baseUrl, auth: { ...credentials, clientId: '', clientSecret: '' } },
      ['auth.clientId: ', 'auth.clientSecret: '],
    ],
    [
      'a colon in a raw client ID',
      { baseUrl, auth: { ...credentials, clientId: 'a:b' } },
      ['auth.clientId: must not contain a colon'],
    ],
    ['a colon in a user name', { baseUrl, auth: { username: 'a:b', password: 'c' } }, ['auth.username: ']],
    [
      'a line break in a secret',
      { baseUrl, auth: { ...credentials, clientSecret: 'a\r\nb' } },
      ['auth.clientSecret: '],
    ],
    ['a domain that climbs the path', { baseUrl, auth: { ...credentials, domain: '..' } }, ['auth.domain: ']],
    [
      'two kinds of auth',
      { baseUrl, auth: { ...credentials, getAccessToken: () => 'x' } },
      ['auth: must be one kind'],
    ],
    [
      'a token that is no function',
      { baseUrl, auth: { getAccessToken: 'token' } },
      ['auth.getAccessToken: '],
    ],
    [
      'an unknown encoding',
      { baseUrl, auth: { ...credentials, credentialsEncoding: 'base64' } },
      ['auth.credentialsEncoding: '],
    ],
    [
      'a cache without delete',
      { baseUrl, auth: { ...credentials, tokenCache: { get() {}, set() {} } } },
      ['auth.tokenCache: '],
    ],
    ['a typing error', { ...working, timeout: 5 }, [': Unrecognized key: "timeout"']],
    ['no timeout', { ...working, timeoutMs: 0 }, ['timeoutMs: ']],
    ['a timeout beyond what timers take', { ...working, timeoutMs: 2 ** 31 }, ['timeoutMs: ']],
    ['retry: true', { ...working, retry: true }, ['retry: ']],
    ['no attempts', { ...working, retry: { maxAttempts: 0 } }, ['retry']],
    [
      'a dispatcher that is none',
      { ...working, dispatcher: {} },
      ['dispatcher: must be an undici Dispatcher'],
    ],
    [
      'dispatcher and fetch',
      { ...working, dispatcher: { request() {} }, fetch() {} },
      ['fetch: cannot be used together'],
    ],
    ['half a logger', { ...working, logger: { info() {} } }, ['logger: ']],
    [
      'a route without the id',
      { ...working, routes: { update: { path: '/api/x' } } },
      ['routes.update.path: must contain'],
    ],
  ])('%s', (_name, options, expected) => {
    const issues = issuesOf(options)
    for (const words of expected)
      expect(
        issues.some((issue) => issue.startsWith(words)),
        `${words} in ${issues}`,
      ).toBe(true)
    expect(issues).toHaveLength(expected.length)
  })

  test('the message names them all and shows no value', () => {
    expect(
      () => new NotificationClient({ baseUrl: 'x', auth: { ...credentials, clientSecret: 's3cret\n' } }),
    ).toThrow(/baseUrl: .*auth\.clientSecret: |auth\.clientSecret: .*baseUrl: /)
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
    { ...working, logger: console, retry: false, timeoutMs: 1, routes: {} },
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

describe('fromEnv', () => {
  const env = {
    NOTIFICATION_BASE_URL: baseUrl,
    NOTIFICATION_AUTH_URL: credentials.authUrl,
    NOTIFICATION_DOMAIN: credentials.domain,
    NOTIFICATION_CLIENT_ID: credentials.clientId,
    NOTIFICATION_CLIENT_SECRET: credentials.clientSecret,
  }

  test('reads the five variables', async () => {
    const service = fakeService()
    await NotificationClient.fromEnv(env, { fetch: service.fetch }).createSubscription(subscription)
    expect(service.tokenRequests).toHaveLength(1)
    expect(service.calls).toHaveLength(1)
  })

  test('names every variable that is missing or empty', () => {
    const { NOTIFICATION_DOMAIN: _, ...rest } = env
    expect(() => NotificationClient.fromEnv({ ...rest, NOTIFICATION_CLIENT_SECRET: '' })).toThrow(
      /NOTIFICATION_DOMAIN.*NOTIFICATION_CLIENT_SECRET/,
    )
    expect(() => NotificationClient.fromEnv({})).toThrow(ConfigurationError)
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

  test('by the logger, which gets one line for each request, retry, refresh and failure', async () => {
    const service = fakeService()
    const lines: string[] = []
    const log = (level: string) => (fields: object, message: string) =>
      lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
    const logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
    service.onCall = (_call, count) =>
      count === 1 ? new Response('', { status: 503 }) : Response.json({ subscription_id: 1 }, { status: 201 })
    const client = service.client({ logger, retry: { baseDelayMs: 0 } })
    await client.createSubscription({ ...subscription, parameters: { token: 'callback-t0ken' } })
    expect(lines.map((line) => line.split(' {')[0])).toEqual([
      'debug Request answered',
      'info Access token obtained',
      'debug Request answered',
      'info Request will be repeated',
      'debug Request answered',
    ])
    expect(lines.join('\n')).toContain('"status":503')
    for (const secret of [credentials.clientSecret, 'token-1', 'callback-t0ken', 'Basic ', 'Bearer ']) {
      expect(lines.join('\n')).not.toContain(secret)
    }
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
