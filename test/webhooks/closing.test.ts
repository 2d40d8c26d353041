import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http'
import { connect as connectHttp2, createSecureServer } from 'node:http2'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { startEmulator } from 'notification-subscriber/emulator'
import { ConfigurationError, DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { expect, test } from 'vitest'
import { coreOf } from '../../src/webhooks/core.js'
import { deferred } from '../support/deferred.js'
import { eventually } from '../support/eventually.js'
import { listen } from '../support/listen.js'
import { lowEnergyDelivery } from './deliveries.js'
import { authenticated, secrets } from './support.js'

const body = JSON.stringify(lowEnergyDelivery())

async function serve(handler: () => unknown = () => {}, ackTimeoutMs = 2_000) {
  const receiver = new DeliveryReceiver({ secrets, logger: false, ackTimeoutMs }).onAny(handler)
  const server = createServer({ keepAliveTimeout: 0 }, toNodeHandler(receiver))
  return { receiver, server, port: await listen(server) }
}

/** Sends one callback, and resolves with its status and header `connection`, or with the code of the error. */
function post(port: number, agent: Agent, send = request) {
  return new Promise<{ status: number | string | undefined; connection?: string | undefined }>((resolve) => {
    const sent = send({ port, host: '127.0.0.1', method: 'POST', agent, headers: authenticated })
    sent.on('response', (response: IncomingMessage) => {
      response
        .resume()
        .on('end', () => resolve({ status: response.statusCode, connection: response.headers.connection }))
    })
    sent.on('error', (error) => resolve({ status: Object(error).code }))
    sent.end(body)
  })
}

const isListening = (server: Server) => server.listening

test('close answers what still comes, asks connections to close, and waits for handlers', async () => {
  let handled = 0
  const { receiver, server, port } = await serve(async () => {
    await sleep(100)
    handled += 1
  })
  const agent = new Agent({ keepAlive: true })
  expect(await post(port, agent)).toEqual({ status: 204, connection: 'keep-alive' })
  const inFlight = post(port, agent)
  await once(server, 'request')
  const closed = receiver.close(server)
  expect(await inFlight).toEqual({ status: 204, connection: 'keep-alive' })
  expect(isListening(server)).toBe(false)
  expect(await post(port, agent)).toEqual({ status: 204, connection: 'close' })
  expect(await closed).toBe(0)
  expect(handled).toBe(3)
  agent.destroy()
})

test('idle connections are ended after a quiet second, not at once: each callback begins it anew', async () => {
  const { receiver, server, port } = await serve()
  const agents = [new Agent({ keepAlive: true }), new Agent({ keepAlive: true })] as const
  for (const agent of agents) await post(port, agent)
  const closed = receiver.close(server)
  await sleep(300)
  const lastAt = performance.now()
  expect(await post(port, agents[1])).toEqual({ status: 204, connection: 'close' })
  expect(await closed).toBe(0)
  const waitedMs = performance.now() - lastAt
  expect(waitedMs).toBeGreaterThan(900)
  expect(waitedMs).toBeLessThan(5_000)
  for (const agent of agents) agent.destroy()
})

test('no connection is ended for being idle while handlers run', async () => {
  const work = deferred<void>()
  const { receiver, server, port } = await serve(() => work.promise, 0)
  const agent = new Agent({ keepAlive: true })
  await post(port, agent)
  const closed = receiver.close(server)
  await sleep(1_500)
  expect(await post(port, agent)).toEqual({ status: 204, connection: 'close' })
  work.resolve()
  expect(await closed).toBe(0)
  agent.destroy()
})

test('what is left after timeoutMs is ended: silent and half-open connections, and slow handlers are counted', async () => {
  const work = deferred<void>()
  const { receiver, server, port } = await serve(() => work.promise)
  const silent = connect(port, '127.0.0.1').on('error', () => {})
  const halfOpen = connect(port, '127.0.0.1').on('error', () => {})
  halfOpen.write('POST / HTTP/1.1\r\nHost: a\r\n')
  const agent = new Agent({ keepAlive: true })
  // The handler ends soon after its connection: too late.
  const pending = post(port, agent).then(() => sleep(50).then(work.resolve))
  await once(server, 'request')
  const ended = Promise.all([once(silent, 'close'), once(halfOpen, 'close')])
  expect(await receiver.close(server, { timeoutMs: 300 })).toBe(1)
  await ended
  await pending
  agent.destroy()
})

test('a server for HTTP/2 and HTTP/1 leaves nothing: no session, no silent connection, no living process', async () => {
  await using emulator = await startEmulator()
  const receiver = new DeliveryReceiver({ secrets, logger: false }).onAny(() => {})
  const server = createSecureServer({ ...emulator.tls, allowHTTP1: true }, toNodeHandler(receiver))
  const port = await listen(server)
  const options = { port, host: '127.0.0.1', ca: emulator.ca }
  const agent = new HttpsAgent({ ...options, keepAlive: true })
  const session = connectHttp2(`https://127.0.0.1:${port}`, options)
  const stream = session.request({ ':method': 'POST', ...authenticated }).end(body)
  await once(stream.resume(), 'end')
  expect(await post(port, agent, httpsRequest)).toMatchObject({ status: 204 })
  const silent = connectTls({ ...options, ALPNProtocols: ['http/1.1'] }).on('error', () => {})
  const halfOpen = connectTls({ ...options, ALPNProtocols: ['http/1.1'] }).on('error', () => {})
  await Promise.all([once(silent, 'secureConnect'), once(halfOpen, 'secureConnect')])
  halfOpen.write('POST / HTTP/1.1\r\nHost: a\r\n')
  const ended = Promise.all([once(session, 'close'), once(silent, 'close'), once(halfOpen, 'close')])
  const closed = once(server, 'close')
  expect(await receiver.close(server, { timeoutMs: 2_000 })).toBe(0)
  await ended
  await closed
  await eventually(() => expect(coreOf(receiver).connections.of(server).size).toBe(0))
  agent.destroy()
})

test('a request that another listener has answered before breaks nothing while a server is closed', async () => {
  const { receiver, server, port } = await serve()
  const agent = new Agent({ keepAlive: true })
  await post(port, agent)
  const closed = receiver.close(server)
  server.prependListener('request', (_request, response) => response.writeHead(202).end())
  expect(await post(port, agent)).toMatchObject({ status: 202 })
  agent.destroy()
  expect(await closed).toBe(0)
})

test('a server that does not listen is closed already; what is no server is refused', async () => {
  const { receiver, server } = await serve()
  server.close()
  expect(await receiver.close(server)).toBe(0)
  for (const given of [undefined, {}, { close() {} }]) {
    await expect(receiver.close(given as never)).rejects.toThrow(ConfigurationError)
  }
  await expect(receiver.close(server, { timeoutMs: -1 })).rejects.toThrow(ConfigurationError)
})
