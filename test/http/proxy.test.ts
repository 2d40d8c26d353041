/** Proxies from the environment: a real proxy on loopback, and hosts that only the proxy can reach. */

import { createServer } from 'node:http'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { configuredProxy } from '../../src/http/proxy.js'
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

function bypasses(origin: string): boolean | undefined {
  vi.stubEnv('HTTPS_PROXY', 'http://proxy.example:3128')
  return configuredProxy()?.isBypassedFor(origin)
}

describe('a proxy from the environment', () => {
  test.each(['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'])(
    '%s carries token and calls through tunnels, and reads neither',
    async (name) => {
      await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
      vi.stubEnv(name, new URL('/without?meaning#here', proxy.url).href)
      const client = clientOf(`https://${host}`)
      await client.createSubscription({ ...subscription, parameters: { token: secrets.parameter } })
      await client.close()
      expect(emulator.subscriptions).toHaveLength(1)
      expect(new Set(proxy.requests.map(({ target }) => target))).toEqual(new Set([`${host}:443`]))
      expect(JSON.stringify(proxy.requests)).not.toMatch(/"(?:proxy-)?authorization"/i)
      expectNoSecretIn(proxy.requests)
      // What the client opened is closed: also the tunnels.
      await proxy.idle()
    },
  )

  test('gets no request to http: on loopback, because it could read the request', async () => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    for (const name of ['HTTPS_PROXY', 'HTTP_PROXY']) vi.stubEnv(name, proxy.url)
    await using server = await serving(createServer((_, response) => response.writeHead(204).end()))
    const baseUrl = `http://${server.host}`
    const auth = { username: 'subscriber', password: secrets.password }
    const client = new NotificationClient({ baseUrl, auth, allowInsecureLoopback: true })
    await client.unsubscribe(1)
    await client.close()
    expect(proxy.requests).toEqual([])
  })

  test.each(['NO_PROXY', 'no_proxy'])('%s names hosts that are reached directly', async (name) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    // An address for documentation, where nothing answers (RFC 5737).
    vi.stubEnv(name, 'example.org,192.0.2.1')
    await using client = clientOf('https://192.0.2.1')
    await failureOf(client.getAccessToken({ timeoutMs: 300 }))
    expect(proxy.requests).toEqual([])
  })

  test.each([
    { no_proxy: '', NO_PROXY: 'a.example' },
    { no_proxy: 'a.example', NO_PROXY: '' },
  ])('an empty variable counts as not set: %j', (variables) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
    expect(bypasses('https://a.example')).toBe(true)
  })

  test('an empty variable of a proxy counts as not set, in every spelling', () => {
    for (const name of variables) vi.stubEnv(name, '')
    expect(configuredProxy()).toBeUndefined()
    vi.stubEnv('HTTP_PROXY', 'http://proxy.example:3128')
    expect(configuredProxy()?.name).toContain('HTTP_PROXY')
  })

  test.each([
    ['https://a.example., b.example;"c.example"', ['a.example', 'x.b.example', 'c.example', 'a.example.']],
    ['localhost,*', ['a.example']],
    ['..a.example,*.b.example,*c.example', ['a.example', 'x.a.example', 'x.b.example', 'x.c.example']],
    ['2001:DB8:0::1,[2001:db8::2]:443,2001:db8:12::', ['[2001:db8::1]', '[2001:db8::2]', '[2001:db8:12::]']],
    ['A.example:8443,b.example:443/path', ['a.example:8443', 'b.example']],
    ['b\u00fccher.example', ['xn--bcher-kva.example']],
    ['', ['localhost:3000', '127.0.0.1', '[::1]']],
  ])('%j names hosts as other programs write them', (noProxy, hosts) => {
    vi.stubEnv('NO_PROXY', noProxy)
    expect(hosts.filter((host) => !bypasses(`https://${host}`))).toEqual([])
  })

  test.each([
    ...['ample.com', 'api.example.com:8443', 'api.*example.com', 'api.http://example.com'],
    ...['.', '*.', 'other.example', ''],
  ])('%j does not name another host', (noProxy) => {
    vi.stubEnv('NO_PROXY', noProxy)
    expect(bypasses('https://api.example.com')).toBe(false)
  })

  test('loopback addresses are reached directly', async () => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    await using client = clientOf(emulator.baseUrl)
    await client.getAccessToken()
    expect(proxy.requests).toEqual([])
  })

  test.each([
    ['user:pass%40word', 'user:pass@word'],
    ['CORP%5Cuser:a%2Fb', 'CORP\\user:a/b'],
    ['token', 'token:'],
  ])("the proxy's own credentials go to the proxy: %s", async (credentials, sent) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    vi.stubEnv('HTTPS_PROXY', proxy.url.replace('//', `//${credentials}@`))
    await using client = clientOf(`https://${host}`)
    await client.getAccessToken()
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(`Basic ${btoa(sent)}`)
    expect(emulator.requests[0]?.headers).not.toHaveProperty('proxy-authorization')
  })
})

describe('a proxy that fails', () => {
  const password = 'pr0xy-p4ssword'
  const withPassword = (url: string) => url.replace('//', `//user:${password}@`)

  test.each([
    [403, 1, 'it does not let this machine reach the host.'],
    [407, 1, 'it refuses the credentials that its address has.'],
    [404, 3, `it made no tunnel to ${host}. Is it a proxy, and does it work?`],
    [502, 3, `it made no tunnel to ${host}. Is it a proxy, and does it work?`],
  ])(
    'by answering %i: the error names the proxy, the status and what to do, and the proxy is asked %i times',
    async (refuseWith, times, words) => {
      await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl, refuseWith })
      vi.stubEnv('HTTPS_PROXY', withPassword(proxy.url))
      await using client = clientOf(`https://${host}`)
      const error = await failureOf(client.getAccessToken())
      expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false })
      const { message } = error as Error
      expect(message).toMatch(
        `Could not get through the proxy ${new URL(proxy.url).host}, which HTTPS_PROXY names: ${words}`,
      )
      expect(message).toContain(`(it answered ${refuseWith})`)
      expect(proxy.requests).toHaveLength(times)
      expect(everythingShownBy([error, logger.lines])).not.toContain(password)
      expectNoSecretIn(error, logger.lines)
    },
  )

  const refused = 'it refuses the credentials that its address has.'
  const asked = 'it asks for credentials.'
  test.each([
    ['user:no@', ['Basic realm="x"'], `${refused} Check user name and password, with \`%25\` for a \`%\`. (`],
    ['user:no@', ['NTLM', 'Digest a=b, basic realm=x'], `${refused} Check user name and password`],
    [
      'user:no@',
      ['Negotiate', 'NTLM, Negotiate'],
      `${refused} It offers Negotiate, NTLM; only Basic works here. (`,
    ],
    ['', [], `${asked} Put them into its address, as in \`http://user:password@proxy:3128\`. (`],
    ['', ['Negotiate'], `${asked} It offers Negotiate; only Basic works here. (`],
  ])('by answering 407 to %j, and offering %j: %s', async (credentials, offers, words) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl, refuseWith: 407, offers })
    vi.stubEnv('HTTPS_PROXY', proxy.url.replace('//', `//${credentials}`))
    await using client = clientOf(`https://${host}`)
    expect(await failureOf(client.getAccessToken())).toMatchObject({
      message: expect.stringContaining(words),
    })
  })

  test.each([
    ['HTTPS_PROXY', 'http'],
    ['http_proxy', 'https'],
  ])(
    'by not being there: the error names the proxy that %s names by %s, and not the target',
    async (variable, scheme) => {
      vi.stubEnv(variable, withPassword(`${scheme}://127.0.0.1:${refusingPort}`))
      await using client = clientOf(`https://${host}`)
      const error = await failureOf(client.getAccessToken())
      expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false, cause: { code: 'ECONNREFUSED' } })
      expect((error as Error).message).toMatch(
        `Could not get through the proxy 127.0.0.1:${refusingPort}, which ${variable} names: ` +
          'the connection was refused. Is the address of the proxy right, and is it running? (',
      )
      expect((error as Error).message).not.toContain(host)
      expect(everythingShownBy([error, logger.lines])).not.toContain(password)
    },
  )

  test('by being no proxy: the error asks whether it is one', async () => {
    await using server = await serving(createServer())
    vi.stubEnv('HTTPS_PROXY', `http://${server.host}`)
    await using client = clientOf(`https://${host}`)
    const error = await failureOf(client.getAccessToken())
    expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false })
    expect((error as Error).message).toMatch(
      `Could not get through the proxy ${server.host}, which HTTPS_PROXY names: ` +
        `it made no tunnel to ${host}. Is it a proxy, and does it work? (`,
    )
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
      expect(message).toContain(`the proxy ${new URL(proxy.url).host}, which HTTPS_PROXY names`)
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
    expect((error as Error).message).toMatch(`Could not reach ${host}: its TLS certificate is signed by`)
  })

  test.each([
    'not a url',
    'user:pr0xy-password@proxy',
    'localhost:3128',
    'socks5://user:pr0xy-password@proxy:1080',
    'httpx://user:pr0xy-password@proxy:1080',
    'xhttp://user:pr0xy-password@proxy:1080',
    'ftp://user:pr0xy-password@proxy:21',
    'http://user:pr0xy-password@pro xy',
    'http://user:pr0xy-password%@proxy',
    'http://CORP\\user:pr0xy-password@proxy',
    'http://user:1/pr0xy-password@proxy',
  ])(
    'by having an address that is none, %j: the configuration is wrong, and its password stays hidden',
    async (address) => {
      vi.stubEnv('HTTPS_PROXY', address)
      await using client = clientOf(`https://${host}`)
      const error = await failureOf(client.getAccessToken())
      const message =
        'must be the URL of an HTTP proxy, such as `http://proxy.example.com:3128`, in which user name and password have ' +
        '`%25` for a `%`, `%5C` for a `\\` and `%2F` for a `/`'
      const issues = [{ path: ['HTTPS_PROXY'], message }]
      expect(error).toMatchObject({ code: 'CONFIGURATION', issues })
      expect((error as Error).message).toContain('The proxy that the environment names cannot be used')
      expect(JSON.stringify([error, String(error), (error as Error).cause])).not.toContain('pr0xy-password')
    },
  )
})
