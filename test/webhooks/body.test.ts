import { DeliveryReceiver, toNodeHandler, toWebHandler } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { deliveryOf, lowEnergyDelivery } from './deliveries.js'
import {
  authenticated,
  head,
  openSocket,
  post,
  recordingReceiver,
  secrets,
  serverOf,
  transports,
} from './support.js'

const delivery = JSON.stringify(lowEnergyDelivery())
const requestWith = (body: ReadableStream | Uint8Array<ArrayBuffer>) =>
  new Request('https://app.example.com', { method: 'POST', headers: authenticated, body, duplex: 'half' })
const bytesOf = (text: string) => new TextEncoder().encode(text)

describe.each(transports)('a callback through %s', (transport, open) => {
  test('of a stranger gets 401, another method 405 with Allow, and nothing of it is looked at', async () => {
    const { receiver, received, errors } = recordingReceiver()
    await using server = await open(receiver)
    for (const token of [undefined, 'x', '', 'the-current-secret, the-current-secret']) {
      const headers = token === undefined ? {} : { token }
      expect(await server.send('POST', headers, bytesOf(delivery))).toMatchObject({ status: 401, length: 0 })
    }
    expect([received, errors]).toEqual([[], []])
    // Fastify answers other methods itself: the plugin adds a route for POST alone.
    if (transport === 'toFastifyPlugin') return
    expect(await server.send('GET', authenticated)).toEqual({ status: 405, allow: 'POST', length: 0 })
  })
})

describe('a body that does not arrive within 10 seconds goes to onInvalid, and is answered with 204', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  const problem = 'the body did not arrive within 10000 ms'
  const textOf = (body: unknown) => Buffer.from(body as Uint8Array).toString()

  test('toNodeHandler: the connection is closed', async () => {
    const { receiver, received, errors, problems } = recordingReceiver()
    const handler = toNodeHandler(receiver)
    const begun = deferred<void>()
    await using server = await serverOf((request, response) => {
      request.once('data', begun.resolve)
      handler(request, response)
    })
    const { socket, closed } = openSocket(server.port)
    socket.write(`${head('Content-Length: 100')}{"sub`)
    await begun.promise
    await new Promise(setImmediate)
    vi.advanceTimersByTime(9_999)
    expect(errors).toEqual([])
    vi.advanceTimersByTime(1)
    expect(await closed()).toMatch(/^HTTP\/1.1 204 [\s\S]*connection: close/)
    expect(problems()).toEqual([problem])
    expect(textOf(errors[0]?.body)).toBe('{"sub')
    expect(received).toEqual([])
  })

  test('toWebHandler: the body is cancelled', async () => {
    const { receiver, received, errors, problems } = recordingReceiver()
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
    expect(received).toEqual([])
  })

  test('toNodeHandler: no timer is left of one that arrives', async () => {
    await using server = await serverOf(toNodeHandler(new DeliveryReceiver({ secrets })))
    const { socket, status } = openSocket(server.port)
    socket.write(head(`Content-Length: ${delivery.length}`) + delivery)
    expect(await status()).toBe(204)
    expect(vi.getTimerCount()).toBe(0)
    socket.destroy()
  })
})

describe('no body is larger than maxBodyBytes', () => {
  test('handle: text counts in UTF-8', async () => {
    const text = JSON.stringify(deliveryOf('größer', { text: '€€€€€€€€€' }))
    const bytes = new TextEncoder().encode(text)
    for (const form of [text, bytes, Buffer.from(text), bytes.buffer, new DataView(bytes.buffer)]) {
      for (const [maxBodyBytes, status] of [
        [bytes.length, 204],
        [bytes.length - 1, 413],
        [5, 413],
      ] as const) {
        const { receiver, received } = recordingReceiver({ maxBodyBytes })
        expect((await receiver.handle({ ...post(), body: form })).status).toBe(status)
        expect(received).toHaveLength(status === 204 ? 1 : 0)
      }
    }
  })

  test('the default limit is 1 MiB, and a refused body is not waited for', async () => {
    const { receiver } = recordingReceiver()
    const status = async (size: number) =>
      (await receiver.handle({ ...post(), body: new Uint8Array(size) })).status
    expect([await status(2 ** 20), await status(2 ** 20 + 1)]).toEqual([204, 413])
    expect(await receiver.drain({ timeoutMs: 0 })).toBe(0)
  })

  test('toNodeHandler: chunks that grow too much: 413, and no more is read', async () => {
    const { receiver, problems } = recordingReceiver({ maxBodyBytes: 100_000 })
    await using server = await serverOf(toNodeHandler(receiver))
    const { socket, status, closed } = openSocket(server.port)
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    socket.write(head('Transfer-Encoding: chunked') + chunk + chunk)
    // More before the answer is here could reset the connection, and the answer with it.
    expect(await status()).toBe(413)
    const writing = setInterval(() => socket.write(chunk), 1)
    expect(await closed()).toContain('connection: close')
    clearInterval(writing)
    expect(socket.bytesWritten).toBeLessThan(10_000_000)
    expect(problems()).toEqual([])
  })

  test('toWebHandler: a body that is too large: 413, and no more is read', async () => {
    const handler = toWebHandler(recordingReceiver({ maxBodyBytes: 1_000 }).receiver)
    let pulls = 0
    const cancel = vi.fn()
    const endless = new ReadableStream({
      pull(controller) {
        pulls += 1
        controller.enqueue(new Uint8Array(400))
      },
      cancel,
    })
    expect((await handler(requestWith(endless))).status).toBe(413)
    expect(pulls).toBeLessThan(6)
    expect(cancel).toHaveBeenCalledOnce()
  })
})
