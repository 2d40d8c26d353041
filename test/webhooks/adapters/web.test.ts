import { type DeliveryReceiverOptions, toWebHandler } from 'notification-subscriber/webhooks'
import { describe, expect, test, vi } from 'vitest'
import { deferred } from '../../support/deferred.js'
import { eventually } from '../../support/eventually.js'
import { expectPage } from '../../support/message-page.js'
import { lowEnergyDelivery } from '../deliveries.js'
import { authenticated, recordingReceiver } from '../support.js'

const delivery = JSON.stringify(lowEnergyDelivery())

const post = (
  body: string | Uint8Array<ArrayBuffer> | ReadableStream | null,
  headers: Record<string, string> = authenticated,
) => new Request('https://app.example.com/notifications', { method: 'POST', headers, body, duplex: 'half' })

const streamOf = (...chunks: unknown[]) =>
  new ReadableStream({
    pull(controller) {
      if (chunks.length === 0) controller.close()
      else controller.enqueue(chunks.shift())
    },
  })

const brokenStream = () => new ReadableStream({ start: (controller) => controller.error(new Error('reset')) })

function receive(options: Partial<DeliveryReceiverOptions> = {}) {
  const recording = recordingReceiver(options)
  return { ...recording, handler: toWebHandler(recording.receiver) }
}

describe('toWebHandler', () => {
  test('answers without a body, and does not read the body of a refused sender', async () => {
    const { handler, received } = receive()
    const response = await handler(post(delivery))
    expect([response.status, response.body]).toEqual([204, null])
    const stranger = post(delivery, {})
    expect((await handler(stranger)).status).toBe(401)
    expect(stranger.bodyUsed).toBe(false)
    expect(received).toEqual([lowEnergyDelivery()])
  })

  test('bodies that cannot be read: onInvalid with the reviewed message, 204', async () => {
    const get = () => {
      throw new Error('no body here')
    }
    const unreadable = Object.defineProperty(post(delivery), 'body', { get })
    const requests: Record<string, Request> = {
      'no body': post(null),
      'a broken stream': post(brokenStream()),
      'a stream of text': post(streamOf('text')),
      'a request of another make, whose body cannot be asked for': unreadable,
      'a body that was read before': post(delivery),
      'a body that something else is reading': post(delivery),
    }
    await requests['a body that was read before']?.text()
    requests['a body that something else is reading']?.body?.getReader()
    const messages: Record<string, string> = {}
    for (const [what, request] of Object.entries(requests)) {
      const { handler, problems } = receive()
      expect((await handler(request)).status).toBe(204)
      messages[what] = problems().join()
    }
    await expectPage('bodies-of-web-requests', messages)
  })

  test('a request of a polyfill, which has text and no stream', async () => {
    const { handler, received } = receive()
    const polyfilled = Object.defineProperty(post(delivery), 'body', { value: undefined })
    expect((await handler(polyfilled)).status).toBe(204)
    expect(received).toEqual([lowEnergyDelivery()])
    // As Express calls it, which catches what is thrown, and nothing that is rejected.
    expect(() => handler({ method: 'POST', headers: {} } as Request)).toThrow('it takes a Request')
  })

  test('a delivery that is whole counts, although its stream fails', async () => {
    const { handler, received } = receive()
    await handler(post(streamOf(new TextEncoder().encode(delivery), 'text'), authenticated))
    expect(received).toEqual([lowEnergyDelivery()])
  })
})

describe('waitUntil', () => {
  test('gets a promise of the handlers that still run after ackTimeoutMs, and the platform’s arguments', async () => {
    const { receiver } = receive({ ackTimeoutMs: 5 })
    const { promise, resolve } = deferred<void>()
    receiver.onAny(() => promise)
    const done = vi.fn()
    // The answer does not wait for what it returns.
    const waitUntil = vi.fn((stillRunning: Promise<void>, _env: object, _context: object) =>
      stillRunning.then(done),
    )
    const [env, context] = [{}, {}]
    expect((await toWebHandler(receiver, { waitUntil })(post(delivery), env, context)).status).toBe(204)
    expect(waitUntil).toHaveBeenCalledExactlyOnceWith(expect.any(Promise), env, context)
    await new Promise(setImmediate)
    expect(done).not.toHaveBeenCalled()
    resolve()
    await eventually(() => expect(done).toHaveBeenCalledOnce())
  })

  const tooLate = () => {
    throw new Error('too late')
  }
  test('that throws is logged and changes nothing', async () => {
    const { receiver, lines } = receive({ ackTimeoutMs: 1 })
    const { promise, resolve } = deferred<void>()
    receiver.onAny(() => promise)
    expect((await toWebHandler(receiver, { waitUntil: tooLate })(post(delivery))).status).toBe(204)
    const fields = { event: 'wait-until.failed', err: expect.objectContaining({ message: 'too late' }) }
    const message = 'waitUntil failed: handlers may be cut short'
    await eventually(() => expect(lines).toContainEqual({ level: 'error', fields, message }))
    resolve()
    await receiver.drain()
  })
})
