/** Proxies from the environment: a real proxy on loopback, and hosts that only the proxy can reach. */
import { createServer } from 'node:https'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCertificate } from '../support/certificates.js'
import { ConnectProxy } from '../support/connect-proxy.js'
import { failureOf } from '../support/failure.js'
import { subscription } from '../support/fake-service.js'
import { refusingPort, serving } from '../support/listen.js'
import { recordingLogger } from '../support/recording-logger.js'
import { everythingShownBy, expectNoSecretIn, secrets } from '../support/secrets.js'

const variables = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'NO_PROXY', 'no_proxy'] as const

let emulator: Emulator
beforeEach(async () => {
  for (const name of variables) vi.stubEnv(name, undefined)
  // The client's own dispatcher takes a private authority from the process only; its name is another one here.
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  emulator = await startEmulator({ clientSecret: secrets.clientSecret })
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await emulator.close()
})

const host = 'notifications.intern.example'
const logger = recordingLogger()

function clientOf(baseUrl: string): NotificationClient {
  const { auth } = emulator.clientOptions
  return new NotificationClient({
    baseUrl,
    auth: { ...auth, authUrl: baseUrl },
    retry: { baseDelayMs: 0 },
    logger,
  })
}

/** `PROXY` stands for the proxy's address, `SCHEMELESS` for that without `http://`, `REFUSING` for one where nothing listens. */
type Environment = Readonly<Record<string, string>>

function stubProxies(environment: Environment, proxy: string) {
  for (const [name, value] of Object.entries(environment)) {
    const addresses = {
      PROXY: proxy,
      SCHEMELESS: proxy.replace('http://', ''),
      REFUSING: `http://127.0.0.1:${refusingPort}`,
    }
    vi.stubEnv(name, addresses[value as keyof typeof addresses] ?? value)
  }
}

describe('a proxy from the environment', () => {
  test.each<Environment>([
    { HTTPS_PROXY: 'PROXY' },
    { https_proxy: 'PROXY' },
    { HTTP_PROXY: 'PROXY' },
    { https_proxy: 'PROXY', HTTPS_PROXY: 'REFUSING' },
    { HTTPS_PROXY: 'PROXY', http_proxy: 'REFUSING' },
    { https_proxy: '', HTTPS_PROXY: '', http_proxy: '', HTTP_PROXY: 'PROXY' },
    { HTTPS_PROXY: 'SCHEMELESS' },
    { HTTPS_PROXY: 'PROXY', NO_PROXY: 'example.com, .other.example' },
    { HTTPS_PROXY: 'PROXY', no_proxy: '', NO_PROXY: '' },
  ])('carries token and calls through tunnels, and reads neither: %j', async (environment) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    stubProxies(environment, proxy.url)
    const before = { ...process.env }
    const client = clientOf(`https://${host}`)
    await client.createSubscription({ ...subscription, parameters: { token: secrets.parameter } })
    await client.close()
    expect(emulator.subscriptions).toHaveLength(1)
    expect(new Set(proxy.requests.map(({ target }) => target))).toEqual(new Set([`${host}:443`]))
    expect(JSON.stringify(proxy.requests)).not.toMatch(/"(?:proxy-)?authorization"/i)
    expectNoSecretIn(proxy.requests)
    expect(process.env).toEqual(before)
    // What the client opened is closed: also the tunnels.
    await proxy.idle()
  })

  // An address for documentation, where nothing answers (RFC 5737).
  const silentHost = '192.0.2.1'
  test.each<[url: string, environment: Environment]>([
    [`https://${silentHost}`, { NO_PROXY: `example.org,${silentHost}` }],
    [`https://${silentHost}:8443`, { NO_PROXY: `${silentHost}:8443` }],
    [`https://${silentHost}`, { NO_PROXY: '*' }],
    [`https://${silentHost}`, { no_proxy: '', NO_PROXY: '*' }],
    ...['localhost', 'LOCALHOST.', '127.0.0.1', '127.8.9.10', '[::1]'].map(
      (loopback): [string, Environment] => [`https://${loopback}:${refusingPort}`, {}],
    ),
  ])('is not asked for %s with %j', async (url, environment) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    stubProxies({ HTTPS_PROXY: 'PROXY', HTTP_PROXY: 'PROXY', ...environment }, proxy.url)
    await using client = clientOf(url)
    await failureOf(client.getAccessToken({ timeoutMs: 300 }))
    expect(proxy.requests).toEqual([])
  })

  test.each([
    ['user:pass%40word', 'user:pass@word'],
    ['CORP%5Cuser:a%2Fb', 'CORP\\user:a/b'],
    ['only-a-user', 'only-a-user:'],
  ])("the proxy's own credentials go to the proxy: %s", async (credentials, sent) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    vi.stubEnv('HTTPS_PROXY', proxy.url.replace('//', `//${credentials}@`))
    await using client = clientOf(`https://${host}`)
    await client.getAccessToken()
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(`Basic ${btoa(sent)}`)
    expect(emulator.requests[0]?.headers).not.toHaveProperty('proxy-authorization')
  })

  test('leads to a server of a private authority, which `ca` names', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', undefined)
    const { ca, tls } = createCertificate({ host })
    await using server = await serving(createServer(tls, (_, response) => response.writeHead(204).end()))
    await using proxy = await ConnectProxy.listen({ to: `https://${server.host}` })
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    const options = { baseUrl: `https://${host}`, auth: { getAccessToken: () => 'token' }, ca }
    await using client = new NotificationClient(options)
    await client.unsubscribe(1)
    expect(proxy.requests).toHaveLength(1)
  })
})

describe('a proxy that fails', () => {
  const password = 'pr0xy-p4ssword'
  const withPassword = (url: string) => url.replace('//', `//user:${password}@`)

  test.each([
    { refuseWith: 403, attempts: 1, says: 'list the host in NO_PROXY' },
    { refuseWith: 407, attempts: 1, says: 'The proxy asks for a user and a password' },
    { refuseWith: 502, attempts: 3, says: 'Check the address of the proxy' },
  ])('by answering $refuseWith is named', async ({ refuseWith, attempts, says }) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl, refuseWith })
    vi.stubEnv('HTTPS_PROXY', withPassword(proxy.url))
    await using client = clientOf(`https://${host}`)
    const error = await failureOf(client.getAccessToken())
    expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false })
    expect((error as Error).message).toContain(`the proxy answered ${refuseWith}`)
    expect((error as Error).message).toContain(says)
    expect(proxy.requests).toHaveLength(attempts)
    expect(everythingShownBy([error, logger.lines])).not.toContain(password)
  })

  test('by not being there is named', async () => {
    vi.stubEnv('https_proxy', withPassword(`http://127.0.0.1:${refusingPort}`))
    await using client = clientOf(`https://${host}`)
    const error = await failureOf(client.getAccessToken())
    expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false, cause: { code: 'ECONNREFUSED' } })
    expect((error as Error).message).toContain(
      `no connection to the proxy: connect ECONNREFUSED 127.0.0.1:${refusingPort}. Check the address of the proxy`,
    )
    expect(everythingShownBy([error, logger.lines])).not.toContain(password)
  })

  test('by never answering: the time limit of the call ends it, with an error that names the proxy', async () => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl, silent: true })
    vi.stubEnv('HTTPS_PROXY', withPassword(proxy.url))
    const { username, password: ofUser } = emulator
    const baseUrl = `https://${host}`
    await using waitsForToken = clientOf(baseUrl)
    await using waitsForConnection = new NotificationClient({
      baseUrl,
      auth: { username, password: ofUser },
      logger,
    })
    const errorOf = (client: NotificationClient) =>
      failureOf(client.createSubscription(subscription, { timeoutMs: 1_500 }))
    const [token, connection] = await Promise.all([errorOf(waitsForToken), errorOf(waitsForConnection)])
    for (const [error, phase, words] of [
      [token, 'token', /there was no access token from https:/],
      [connection, 'connection', /this attempt was not sent/],
    ] as const) {
      expect(error).toMatchObject({ code: 'TIMEOUT', phase, timeoutMs: 1_500 })
      const { message } = error as Error
      expect(message).toMatch(words)
      expect(message).toContain('the proxy that HTTPS_PROXY names')
      expect(everythingShownBy([error, logger.lines])).not.toContain(password)
    }
    const target = `${host}:443`
    expect(proxy.requests).toMatchObject([{ target }, { target }])
  })

  test('and a failure behind it is reported as one of the target', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', undefined)
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    await using client = clientOf(`https://${host}`)
    const error = await failureOf(client.getAccessToken())
    expect((error as Error).message).toMatch(/unable to verify the first certificate|self.signed/)
  })

  test.each([
    'not a url',
    'socks5://proxy',
    'http://user:pr0xy-password@pro xy',
    'http://user:pr0xy-password%@proxy',
    'http://user:pr0xy-password#@proxy',
  ])(
    'by having an address that is none, %j: the configuration is wrong, and its password stays hidden',
    async (address) => {
      vi.stubEnv('http_proxy', address)
      await using client = clientOf(`https://${host}`)
      const error = await failureOf(client.getAccessToken())
      expect(error).toMatchObject({ code: 'CONFIGURATION', issues: [{ path: ['http_proxy'] }] })
      expect((error as Error).message).toContain('`%23` for a `#`')
      expect(JSON.stringify([error, String(error), (error as Error).cause])).not.toContain('pr0xy-password')
    },
  )
})
