import {
  DeliveryReceiver,
  type DeliveryReceiverOptions,
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { lowEnergyDelivery } from './deliveries.js'
import {
  authenticated,
  head,
  openSocket,
  recordingOnInvalid,
  secrets,
  serverOf,
  transports,
} from './support.js'

const delivery = JSON.stringify(lowEnergyDelivery())
const bytesOf = (text: string) => new TextEncoder().encode(text)

describe.each(transports)('a callback through %s', (transport, open) => {
  async function serve(options: Partial<DeliveryReceiverOptions> = {}) {
    const { onInvalid, errors, problems } = recordingOnInvalid()
    const received: unknown[] = []
    const settings = { secrets, onInvalid, onRefused: () => {}, ...options } as DeliveryReceiverOptions
    const receiver = new DeliveryReceiver(settings).onAny((_, context) => received.push(context.delivery))
    const opened = await open(receiver)
    const post = async (body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = authenticated) =>
      (await opened.send('POST', headers, body)).status
    return Object.assign(opened, { post, received, errors, problems })
  }

  test('is answered with 204 and no body, and reaches the handlers', async () => {
    await using server = await serve()
    const text = JSON.stringify({ ...lowEnergyDelivery(), added: '€ größer 😀' })
    expect(await server.send('POST', authenticated, bytesOf(text))).toMatchObject({ status: 204, length: 0 })
    expect(server.received).toEqual([JSON.parse(text)])
  })

  // Fastify answers other methods itself: the plugin adds a route for POST alone.
  if (transport !== 'toFastifyPlugin')
    test('of another method gets 405, with Allow', async () => {
      await using server = await serve()
      expect(await server.send('GET', authenticated)).toEqual({ status: 405, allow: 'POST', length: 0 })
    })

  test.each<[string, Record<string, string>]>([
    ['no secret', {}],
    ['a wrong one', { token: 'x' }],
    ['an empty one', { token: '' }],
    ['one that was sent twice and joined', { token: 'the-current-secret, the-current-secret' }],
  ])('with %s gets 401, and nothing of it is looked at', async (_, headers) => {
    await using server = await serve()
    expect(await server.send('POST', headers, bytesOf(delivery))).toMatchObject({ status: 401, length: 0 })
    expect([server.received, server.errors]).toEqual([[], []])
  })

  test('of exactly maxBodyBytes is read, a larger one gets 413', async () => {
    await using server = await serve({ maxBodyBytes: delivery.length })
    expect(await server.post(bytesOf(delivery))).toBe(204)
    expect(await server.post(bytesOf(`${delivery} `))).toBe(413)
    expect(server.received).toHaveLength(1)
  })
})

describe('a body that does not arrive within 10 seconds goes to onInvalid, and is answered with 204', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  const problem = 'the body did not arrive within 10000 ms'
  const textOf = (body: unknown) => Buffer.from(body as Uint8Array).toString()
  const requestWith = (body: ReadableStream) =>
    new Request('https://app.example.com', { method: 'POST', headers: authenticated, body, duplex: 'half' })

  test('toNodeHandler: the connection is closed', async () => {
    const { onInvalid, errors, problems } = recordingOnInvalid()
    const handler = toNodeHandler(
      new DeliveryReceiver({ secrets, onInvalid }).onAny(() => expect.unreachable()),
    )
    const begun = deferred<void>()
    await using server = await serverOf((request, response) => {
      request.once('data', begun.resolve)
      handler(request, response)
    })
    const { socket, closed } = openSocket(server.port)
    socket.write(`${head('Content-Length: 100')}{"sub`)
    await begun.promise
    await new Promise(setImmediate)
    vi.advanceTimersByTime(4_999)
    expect(errors).toEqual([])
    vi.advanceTimersByTime(5_001)
    expect(await closed()).toMatch(/^HTTP\/1.1 204 [\s\S]*connection: close/)
    expect(problems()).toEqual([problem])
    expect(textOf(errors[0]?.body)).toBe('{"sub')
  })

  test('toNodeHandler: no timer is left of a body that takes less', async () => {
    const handler = toNodeHandler(new DeliveryReceiver({ secrets, logger: false }))
    const begun = deferred<void>()
    await using server = await serverOf((request, response) => {
      request.once('data', begun.resolve)
      handler(request, response)
    })
    const { socket, status } = openSocket(server.port)
    socket.write(`${head('Content-Length: 3')}{`)
    await begun.promise
    await new Promise(setImmediate)
    expect(vi.getTimerCount()).toBe(1)
    socket.write(' }')
    expect(await status()).toBe(204)
    expect(vi.getTimerCount()).toBe(0)
    socket.destroy()
  })

  test('toWebHandler: no timer is left of a body that takes less', async () => {
    let controller: ReadableStreamDefaultController | undefined
    const body = new ReadableStream({
      start(started) {
        controller = started
      },
    })
    const response = toWebHandler(new DeliveryReceiver({ secrets, logger: false }))(requestWith(body))
    await new Promise(setImmediate)
    expect(vi.getTimerCount()).toBe(1)
    controller?.enqueue(new TextEncoder().encode('{}'))
    controller?.close()
    expect((await response).status).toBe(204)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('toWebHandler: the body is cancelled', async () => {
    const { onInvalid, errors, problems } = recordingOnInvalid()
    const receiver = new DeliveryReceiver({ secrets, onInvalid }).onAny(() => expect.unreachable())
    const cancel = vi.fn()
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"sub')),
      cancel,
    })
    const response = toWebHandler(receiver)(requestWith(body))
    await new Promise(setImmediate)
    vi.advanceTimersByTime(10_000)
    expect((await response).status).toBe(204)
    expect(cancel).toHaveBeenCalledOnce()
    expect(problems()).toEqual([problem])
    expect(textOf(errors[0]?.body)).toBe('{"sub')
  })
})
