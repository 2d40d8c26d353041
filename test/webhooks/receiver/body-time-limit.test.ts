import { DeliveryReceiver, toNodeHandler, toWebHandler } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deferred } from '../../support/deferred.js'
import { head, openSocket, recordingOnInvalid, secrets, serverOf } from './support.js'

describe('a body that does not arrive within 10 seconds goes to onInvalid, and is answered with 204', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  const problem = 'the body did not arrive within 10000 ms'
  const textOf = (body: unknown) => Buffer.from(body as Uint8Array).toString()

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
    const headers = { token: 'current-secret' }
    const request = new Request('https://app.example.com', { method: 'POST', headers, body, duplex: 'half' })
    const response = toWebHandler(new DeliveryReceiver({ secrets, logger: false }))(request)
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
    const headers = { token: 'current-secret' }
    const request = new Request('https://app.example.com', { method: 'POST', headers, body, duplex: 'half' })
    const response = toWebHandler(receiver)(request)
    await new Promise(setImmediate)
    vi.advanceTimersByTime(10_000)
    expect((await response).status).toBe(204)
    expect(cancel).toHaveBeenCalledOnce()
    expect(problems()).toEqual([problem])
    expect(textOf(errors[0]?.body)).toBe('{"sub')
  })
})
