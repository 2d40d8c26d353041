/** Proxies from the environment (design.md, "Requests"): a real proxy on loopback, and hosts that only it can reach. */
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ConnectProxy } from '../support/connect-proxy.js'
import { subscription } from '../support/fake-service.js'
import { recordingLogger } from '../support/recording-logger.js'
import { expectNoSecretIn, secrets } from '../support/secrets.js'

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

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('should have failed'),
    (reason: unknown) => reason,
  )

describe('a proxy from the environment', () => {
  test.each(['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'])(
    '%s carries token and calls through tunnels, and reads neither',
    async (name) => {
      await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
      vi.stubEnv(name, proxy.url)
      const client = clientOf(`https://${host}`)
      await client.createSubscription({ ...subscription, parameters: { token: secrets.parameter } })
      await client.close()
      expect(emulator.subscriptions).toHaveLength(1)
      expect(new Set(proxy.requests.map(({ target }) => target))).toEqual(new Set([`${host}:443`]))
      expect(JSON.stringify(proxy.requests)).not.toMatch(/"authorization"/i)
      expectNoSecretIn(proxy.requests)
      // What the client opened is closed: also the tunnels.
      await proxy.idle()
    },
  )

  test.each(['NO_PROXY', 'no_proxy'])('%s names hosts that are reached directly', async (name) => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    vi.stubEnv(name, 'example.org,127.0.0.1')
    await using client = clientOf(emulator.baseUrl)
    await client.getAccessToken()
    expect(proxy.requests).toEqual([])
  })

  test("the proxy's own credentials go to the proxy", async () => {
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    vi.stubEnv('HTTPS_PROXY', proxy.url.replace('//', '//user:pass%40word@'))
    await using client = clientOf(`https://${host}`)
    await client.getAccessToken()
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(`Basic ${btoa('user:pass@word')}`)
    expect(emulator.requests[0]?.headers).not.toHaveProperty('proxy-authorization')
  })
})

describe('a proxy that fails', () => {
  test.each([403, 407, 502])(
    'by answering %i: nothing was sent, and the message says it',
    async (refuseWith) => {
      await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl, refuseWith })
      vi.stubEnv('HTTPS_PROXY', proxy.url)
      await using client = clientOf(`https://${host}`)
      const error = await failure(client.getAccessToken())
      expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false })
      expect((error as Error).message).toContain(host)
      expect((error as Error).message).toContain(String(refuseWith))
      expect(proxy.requests).toHaveLength(3)
      expectNoSecretIn(error, logger.lines)
    },
  )

  test("by not being there: the message names the proxy's address, too", async () => {
    const proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    await proxy[Symbol.asyncDispose]()
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    await using client = clientOf(`https://${host}`)
    const error = await failure(client.getAccessToken())
    expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false })
    expect((error as Error).message).toContain(host)
    expect((error as Error).message).toContain(new URL(proxy.url).host)
  })

  test.each(['not a url', 'user:pr0xy-password@proxy', 'ftp://user:pr0xy-password@proxy:21'])(
    'by having an address that is none, %j: the configuration is wrong, and its password stays hidden',
    async (address) => {
      vi.stubEnv('HTTPS_PROXY', address)
      await using client = clientOf(`https://${host}`)
      const error = await failure(client.getAccessToken())
      expect(error).toMatchObject({
        code: 'CONFIGURATION',
        message: 'HTTPS_PROXY or HTTP_PROXY in the environment must be the URL of a proxy.',
        issues: [{ path: ['HTTPS_PROXY'], message: 'must be the URL of a proxy' }],
      })
      expect(JSON.stringify([error, String(error), (error as Error).cause])).not.toContain('pr0xy-password')
    },
  )
})
