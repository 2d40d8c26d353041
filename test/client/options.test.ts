import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { baseUrl, credentials, fakeService, subscription } from '../support/fake-service.js'
import { expectPage, problemsIn } from '../support/message-page.js'
import { recordingLogger } from '../support/recording-logger.js'

function problemsOf(options: unknown): string {
  try {
    new NotificationClient(options as never)
  } catch (error) {
    return problemsIn(error)
  }
  return ''
}

const working = { baseUrl, auth: credentials }

const { ca } = createLoopbackCertificate()
const brokenCertificate = `${ca}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`

test.each([
  ['`\\n` instead of line breaks', '\\n', ''],
  ['spaces instead of line breaks', ' ', ''],
  ['indented lines', '\n    ', ''],
  ['no line break after another one', '\n', ca.trim()],
])('certificates are used with %s', async (_how, lineBreak, before) => {
  await using emulator = await startEmulator()
  const pem = before + emulator.ca.replaceAll('\n', lineBreak)
  const { baseUrl, auth } = emulator.clientOptions
  await using client = new NotificationClient({ baseUrl, auth, ca: pem })
  expect(await client.getAccessToken()).toBeTruthy()
})

describe('options that cannot work are refused with every problem listed', () => {
  const withAuth = (auth: object) => ({ baseUrl, auth: { ...credentials, ...auth } })
  const cache = { get() {}, set() {} }
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  const refused: Record<string, unknown> = {
    'nothing at all': undefined,
    'no auth': { baseUrl },
    'auth that is null': { baseUrl, auth: null },
    'auth that is text': { baseUrl, auth: 'Bearer x' },
    'no address': { auth: credentials },
    'http:': { ...working, baseUrl: 'http://notifications.example.com' },
    'http: for tokens': withAuth({ authUrl: 'http://a.example' }),
    'http: beyond loopback': { ...working, baseUrl: 'http://10.0.0.1' },
    'a host that begins like loopback': { ...working, baseUrl: 'http://127.0.0.1.evil.example' },
    'a host that ends like loopback': { ...working, baseUrl: 'http://evil-localhost' },
    'a host like loopback for tokens': {
      ...working,
      auth: { ...credentials, authUrl: 'http://localhost.evil.example' },
    },
    'another scheme on loopback': { ...working, baseUrl: 'ftp://localhost' },
    'a query': { ...working, baseUrl: new URL('https://x.example?a=b') },
    'the path of a create in the address': { ...working, baseUrl: 'https://x.example/v2/api/subscriptions/' },
    'the path of tokens in the address for tokens': withAuth({
      authUrl: 'https://x.example/auth/realms/acme/protocol/openid-connect/token',
    }),
    'a realm in the address for tokens': withAuth({ authUrl: 'https://x.example/auth/realms/acme' }),
    'a fragment in the address for tokens': withAuth({ authUrl: 'https://x.example#a' }),
    'a password in the address': { ...working, baseUrl: 'https://:p@x.example' },
    'no URL': { ...working, baseUrl: 'notifications.example.com' },
    'an address that is a number': { ...working, baseUrl: 7 },
    'credentials that are undefined': withAuth({ clientId: undefined, clientSecret: undefined }),
    'empty credentials': withAuth({ clientId: '', clientSecret: '', scope: '', domain: '' }),
    placeholders: withAuth({ clientId: 'undefined', clientSecret: `\${SECRET}`, domain: '<tenant>' }),
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
    'an unknown way to authenticate': withAuth({ clientAuthentication: 'jwt' }),
    'no secret': withAuth({ clientSecret: undefined }),
    'a cache without get': withAuth({ tokenCache: { ...cache, get: undefined } }),
    'a cache without set': withAuth({ tokenCache: { ...cache, set: undefined } }),
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
  }

  test('each problem is reported with its place and its reason', async () => {
    const problems = Object.entries(refused).map(([name, options]) => [name, problemsOf(options)])
    await expectPage('problems-of-client-options', Object.fromEntries(problems))
  })
})

describe('options that work', () => {
  test.each([
    working,
    { baseUrl: new URL(baseUrl), auth: { ...credentials, authUrl: new URL(credentials.authUrl) } },
    { baseUrl: 'http://localhost:8080', auth: { username: 'u', password: 'p' } },
    { baseUrl: 'http://[::1]:8080', auth: { username: 'u', password: 'p' } },
    { baseUrl: 'http://127.255.0.1', auth: { username: 'u', password: 'p' } },
    { ...working, logger: console, retry: false, timeoutMs: 1, routes: {} },
    { ...working, logger: false, ca: `# corporate\n${ca}${ca}` },
    { baseUrl: 'HTTPS://Notifications.Example.com:443//', auth: credentials },
    { ...working, retry: {}, timeoutMs: 2 ** 31 - 1 },
    { ...working, retry: { maxAttempts: 1, baseDelayMs: 0, maxDelayMs: 0 } },
    { ...working, routes: { unsubscribe: {}, update: { method: 'POST', path: '/{subscriptionId}~!' } } },
    { baseUrl, auth: { ...credentials, domain: '...', clientSecret: 'a:ü ' } },
    { baseUrl, auth: { ...credentials, clientId: 'a:b', credentialsEncoding: 'form-urlencoded' } },
    { baseUrl, auth: { ...credentials, clientId: 'a:b', clientAuthentication: 'body' } },
    {
      baseUrl,
      auth: { ...credentials, clientId: 'a:b', clientSecret: undefined, clientAuthentication() {} },
    },
    { baseUrl, auth: { ...credentials, scope: 'a', tokenCache: new Map() } },
    { baseUrl, auth: { getAccessToken: () => 'x', others: 'are welcome' } },
    { ...working, dispatcher: undefined, fetch: undefined, timeoutMs: undefined, retry: undefined },
  ])('%#', (options) => {
    expect(problemsOf(options)).toBe('')
  })

  test('http: callbacks to loopback are for a service on loopback, and never reach another one', async () => {
    const service = fakeService()
    const local = { ...subscription, callbackUrl: 'http://127.0.0.1:3000/notifications' }
    await expect(service.client().createSubscription(local)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      issues: [{ path: ['callbackUrl'] }],
    })
    expect([...service.calls, ...service.tokenRequests]).toEqual([])
    for (const address of ['https://localhost:8443', 'http://[::1]:8080/below']) {
      await service.client({ baseUrl: address }).createSubscription(local)
    }
    expect(service.calls).toHaveLength(2)
  })

  test('http: on loopback is one warning with the addresses, https: none', () => {
    const logger = recordingLogger()
    const auth = { ...credentials, authUrl: 'http://127.0.0.1:8080' }
    new NotificationClient({ baseUrl: 'http://localhost:8081/x', auth, logger })
    new NotificationClient({ baseUrl: 'https://localhost', auth: credentials, logger })
    const addresses = ['http://localhost:8081/x', 'http://127.0.0.1:8080/']
    expect(logger.lines.map(({ fields }) => fields)).toEqual([{ event: 'client.unencrypted', addresses }])
  })
})
