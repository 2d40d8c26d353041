import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type ClientHttp2Session, connect, createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { type KeyAndCertificate, startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { expectTypedDelivery, type StartServer } from './support/expect-delivery.js'
import { lowEnergy } from './support/notifications.js'
import { startServer } from './support/running-server.js'
import { callbackToken } from './support/subscribed.js'

const servers: [name: string, StartServer][] = [
  ['node:https', (receiver, tls) => startServer(createHttpsServer(tls, toNodeHandler(receiver)))],
  ['node:http', (receiver) => startServer(createHttpServer(toNodeHandler(receiver)), 'http')],
  ['node:http2 that allows HTTP/1', (receiver, tls) => startServer(http2Server(receiver, tls))],
]

describe('the servers of Node.js', () => {
  test.each(servers)('%s hands a typed notification to the handler', (_name, startServer) =>
    expectTypedDelivery(startServer),
  )

  test('node:http2 answers over HTTP/2', async () => {
    const types: string[] = []
    const receiver = new DeliveryReceiver({ secrets: { token: callbackToken }, logger: false }).onAny(
      ({ type }) => types.push(type),
    )
    await using emulator = await startEmulator()
    const server = await startServer(http2Server(receiver, emulator.tls))
    const session = connect(server.origin, { ca: emulator.ca })
    const { category: _category, ...notification } = lowEnergy
    const body = JSON.stringify({ subscriptionId: 1, notification })
    expect(await post(session, body, { token: callbackToken })).toMatchObject({ ':status': 204 })
    expect(await post(session, body, { token: 'of-someone-else' })).toMatchObject({ ':status': 401 })
    expect(types).toEqual(['lowEnergyAgentOpened'])
    session.close()
    await server.close()
  })
})

function http2Server(receiver: DeliveryReceiver, tls: KeyAndCertificate) {
  return createSecureServer({ ...tls, allowHTTP1: true }, toNodeHandler(receiver))
}

/** Sends one callback, and resolves with its answer: the emulator speaks HTTP/1 only. */
async function post(session: ClientHttp2Session, body: string, headers: Record<string, string>) {
  const stream = session.request({ ':method': 'POST', ':path': '/notifications', ...headers })
  stream.end(body)
  const [answer] = await once(stream, 'response')
  stream.resume()
  await once(stream, 'close')
  return answer
}
