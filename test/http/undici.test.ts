/** What a dispatcher is given, and what is read of its answers. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import net from 'node:net'
import { join } from 'node:path'
import * as tls from 'node:tls'
import { promisify } from 'node:util'
import { type DispatcherLike, NotificationClient } from 'notification-subscriber'
import { Agent, MockAgent } from 'undici'
import { MockAgent as MockAgent6 } from 'undici6'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { trustedWith } from '../../src/http/undici.js'
import { createCertificate } from '../support/certificates.js'
import { eventually } from '../support/eventually.js'
import { failureOf } from '../support/failure.js'
import { baseUrl, subscription } from '../support/fake-service.js'
import { collectGarbage } from '../support/heap.js'
import { serving } from '../support/listen.js'
import { recordingLogger } from '../support/recording-logger.js'
import { routeOf } from '../support/routes.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { undici8 } from '../support/undici8.js'

const auth = { getAccessToken: () => 'token' }

function clientWith(dispatcher: DispatcherLike): NotificationClient {
  return new NotificationClient({ baseUrl, auth, dispatcher, retry: false })
}

interface Mock extends DispatcherLike {
  get(origin: string): {
    intercept(request: { method: string; path: string }): { reply(status: number): unknown }
  }
  disableNetConnect(): void
}

test.each<{ version: number; mock: Mock }>([
  { version: 7, mock: new MockAgent() },
  { version: 6, mock: new MockAgent6() },
  ...(undici8 ? [{ version: 8, mock: new undici8.MockAgent() }] : []),
])(
  'a mock of undici $version without an interceptor for a request is named, proves that nothing was sent, and is asked once',
  async ({ mock }) => {
    mock.get(baseUrl).intercept({ method: 'PUT', path: '/api/subscriptions' }).reply(201)
    mock.disableNetConnect()
    const { lines, ...logger } = recordingLogger()
    const client = new NotificationClient({ baseUrl, auth, dispatcher: mock, logger })
    const error = await failureOf(client.createSubscription(subscription))
    expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false })
    expect(String(error)).toContain('Mock dispatch not matched')
    expect(lines).toMatchObject([{ fields: { event: 'request.failed' } }])
  },
)

test('a mock of one origin answers', async () => {
  const mock = new MockAgent().get(baseUrl)
  mock.intercept(routeOf('unsubscribe', 7)).reply(204)
  await clientWith(mock).unsubscribe(7, { timeoutMs: 5_000 })
})

test('a dispatcher that was closed is named', async () => {
  const dispatcher = new Agent()
  await dispatcher.close()
  const error = await failureOf(clientWith(dispatcher).unsubscribe(7))
  expect(error).toMatchObject({ code: 'CONNECTION', message: expect.stringMatching(/closed|destroyed/) })
})

test('a dispatcher is not closed by the client, and what it throws may have been sent', async () => {
  const close = vi.fn()
  const request = () => Promise.reject(new Error('broken'))
  const client = clientWith(Object.assign({ request }, { close, destroy: close }))
  await expect(client.unsubscribe(7)).rejects.toMatchObject({ code: 'CONNECTION', requestSent: true })
  await client.close()
  expect(close).not.toHaveBeenCalled()
})

describe('on a loopback server', () => {
  const answering = (handler: RequestListener) => serving(createServer(handler))

  const clientOf = ({ host }: { readonly host: string }) =>
    new NotificationClient({ baseUrl: `http://${host}`, auth, retry: false })

  test('a 204 that declares a body is an answer', async () => {
    await using server = await answering((_request, response) =>
      response.writeHead(204, { 'content-length': 2 }).end(),
    )
    await using client = clientOf(server)
    await client.unsubscribe(1)
  })

  test('no timer is left of an answer that is an error, nor of early hints: it would keep a script from exiting', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    // Undici has a timer for a connection that is kept.
    const headers = { connection: 'close' }
    await using server = await answering((_request, response) => {
      response.writeEarlyHints({ link: '</x>; rel=preload' })
      response.writeHead(400, headers).end()
    })
    await using client = clientOf(server)
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 400 })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a connection that the server would keep for ten minutes is closed after half a minute without a call', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const closed = vi.fn()
    const listener: RequestListener = ({ socket }, response) => {
      socket.once('close', closed)
      response.writeHead(204).end()
    }
    await using server = await serving(createServer({ keepAliveTimeout: 600_000 }, listener))
    await using client = clientOf(server)
    await client.unsubscribe(1)
    await vi.advanceTimersByTimeAsync(29_000)
    await client.unsubscribe(2)
    expect(closed).not.toHaveBeenCalled()

    await vi.advanceTimersByTimeAsync(31_000)
    await eventually(() => expect(closed).toHaveBeenCalled())
  })

  test.each([
    { told: 250, addressMs: 2_000 },
    { told: 5_000, addressMs: 5_000 },
  ])(
    'each address of a host may take $addressMs ms, where Node.js by itself would give it $told ms',
    async ({ told, addressMs }) => {
      const before = net.getDefaultAutoSelectFamilyAttemptTimeout()
      net.setDefaultAutoSelectFamilyAttemptTimeout(told)
      const connect = vi.spyOn(net, 'connect')
      onTestFinished(() => {
        net.setDefaultAutoSelectFamilyAttemptTimeout(before)
        connect.mockRestore()
      })
      await using server = await answering((_request, response) => response.writeHead(204).end())
      await using client = clientOf(server)
      await client.unsubscribe(1)
      const [[options] = []]: unknown[][] = connect.mock.calls
      expect(options).toMatchObject({ autoSelectFamilyAttemptTimeout: addressMs })
    },
  )

  test('connections that broke are not kept until the client is closed', async () => {
    const sockets: WeakRef<object>[] = []
    const note = (message: unknown) => sockets.push(new WeakRef((message as { socket: object }).socket))
    subscribe('net.client.socket', note)
    await using server = await answering((_request, response) => response.destroy())
    await using client = clientOf(server)
    for (let id = 0; id < 20; id++) await client.unsubscribe(id).catch(() => {})
    unsubscribe('net.client.socket', note)
    expect(sockets).toHaveLength(20)
    await eventually(() => {
      collectGarbage()
      // The last ones may still stand in variables of undici's.
      expect(sockets.filter((socket) => socket.deref() !== undefined).length).toBeLessThan(5)
    })
  })

  test('an abort at any moment of the first request ends it, and sends nothing afterwards', async () => {
    let requests = 0
    const server = createServer(() => requests++)
    await using address = await serving(server)
    for (let turns = 0; turns < 12; turns++) {
      const abort = new AbortController()
      const client = clientOf(address)
      const call = client.unsubscribe(1, { signal: abort.signal })
      // From here on, only microtasks separate the call from its request.
      await import('undici')
      for (let turn = 0; turn < turns; turn++) await null
      const requestsBefore = requests
      abort.abort('enough')
      await expect(call).rejects.toBe('enough')
      expect(requests).toBe(requestsBefore)
      await client.close()
    }
    const count = promisify(server.getConnections).bind(server)
    await eventually(async () => expect(await count()).toBe(0))
    expect(requests).toBe(0)
  })
})

describe('beside the option `ca`, what the machine trusts stays trusted', () => {
  const own = createCertificate({}).ca.trim()

  test.skipIf('getCACertificates' in tls)('the public authorities and NODE_EXTRA_CA_CERTS', async () => {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'extra.pem')
    await writeFile(file, 'extra')
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv('NODE_EXTRA_CA_CERTS', file)
    expect(await trustedWith(own)).toEqual([...tls.rootCertificates, 'extra', own])
    vi.stubEnv('NODE_EXTRA_CA_CERTS', join(folder.path, 'missing.pem'))
    expect(await trustedWith(own)).toEqual([...tls.rootCertificates, own])
  })

  test('what Node.js says that it trusts, where it can', async () => {
    const getCACertificates = vi.fn(() => ['of the system'])
    vi.doMock('node:tls', () => ({ ...tls, getCACertificates }))
    expect(await trustedWith(own)).toEqual(['of the system', own])
    expect(getCACertificates).toHaveBeenCalledWith('default')
    vi.doUnmock('node:tls')
  })
})
