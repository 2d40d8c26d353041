import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { PassThrough, type Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { toNodeHandler } from 'notification-subscriber/webhooks'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { deferred } from '../../support/deferred.js'
import { eventually } from '../../support/eventually.js'
import { listen } from '../../support/listen.js'
import { expectPage } from '../../support/message-page.js'
import { lowEnergyDelivery } from '../deliveries.js'
import { head, openSocket, recordingReceiver, serverOf } from '../support.js'

const delivery = JSON.stringify(lowEnergyDelivery())
const withLength = head(`Content-Length: ${delivery.length}`)

// Node.js warns once in a process of a header that HTTP/2 does not have.
const warn = vi.spyOn(process, 'emitWarning')
afterAll(() => expect(warn).not.toHaveBeenCalled())

/** A receiver that keeps what it gets, and its handler. */
function receive() {
  const recording = recordingReceiver()
  return { ...recording, handler: toNodeHandler(recording.receiver) }
}

/** A server with such a receiver; `before` stands for a middleware. */
async function serve(before: (request: never) => unknown = () => {}) {
  const receiving = receive()
  const listener: RequestListener = async (request, response) => {
    const done = before(request as never)
    // What listens must not listen alone for a while.
    if (done instanceof Promise) await done
    receiving.handler(request, response)
  }
  return Object.assign(await serverOf(listener), receiving)
}

test('is an async function: restify refuses others that do not take `next`', () => {
  expect(receive().handler.constructor.name).toBe('AsyncFunction')
})

describe('over node:http', () => {
  test('a delivery is answered with 204 and no body, and the connection is kept', async () => {
    await using server = await serve()
    const { socket, received, status } = openSocket(server.port)
    socket.write(withLength + delivery)
    expect(await status()).toBe(204)
    expect(received()).toMatch(/Connection: keep-alive/)
    socket.write(withLength + delivery)
    await eventually(() => expect(server.received).toEqual([lowEnergyDelivery(), lowEnergyDelivery()]))
  })

  test('the body of a refused sender is not awaited, and a long one is not read', async () => {
    await using server = await serve()
    const { socket, closed } = openSocket(server.port)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nToken: x\r\nContent-Length: 99999999\r\n\r\n')
    expect(await closed()).toMatch(/^HTTP\/1.1 401 [\s\S]*connection: close/)
  })

  test('chunked, in many pieces, with characters cut in two', async () => {
    await using server = await serve()
    const { socket, status } = openSocket(server.port)
    const body = JSON.stringify({ ...lowEnergyDelivery(), added: '€uro größer 😀' })
    socket.write(head('Transfer-Encoding: chunked'))
    for (const byte of Buffer.from(body)) socket.write(Buffer.from([0x31, 13, 10, byte, 13, 10]))
    socket.write('0\r\n\r\n')
    expect(await status()).toBe(204)
    expect(server.received).toEqual([JSON.parse(body)])
  })

  test.each<[what: string, before: (request: IncomingMessage) => unknown]>([
    ['has paused the request', (request) => sleep(5, request.pause())],
    ['has set UTF-8', (request) => void request.setEncoding('utf8')],
    ['listens, too', (request) => void request.on('data', () => {})],
  ])('after something that %s', async (_, before) => {
    await using server = await serve(before)
    const umlauts = delivery.replace('alice', 'älïce 😀')
    expect((await server.post(umlauts)).status).toBe(204)
    expect(server.received).toEqual([JSON.parse(umlauts)])
  })

  test('a sender that hangs up in the body: the handlers are not called, onInvalid gets what was there', async () => {
    let arrived = 0
    await using server = await serve(() => {
      arrived += 1
    })
    for (const end of ['end', 'resetAndDestroy'] as const) {
      const before = arrived
      const { socket } = openSocket(server.port)
      socket.write(withLength + delivery.slice(0, 50))
      // What a reset overtakes is never read.
      await eventually(() => expect(arrived).toBeGreaterThan(before))
      socket[end]()
    }
    await eventually(() => expect(server.errors).toHaveLength(2))
    expect(server.problems()).toEqual(Array(2).fill('the body broke off with the connection'))
    expect(Buffer.from(server.errors[0]?.body as Uint8Array).toString()).toBe(delivery.slice(0, 50))
    expect(server.received).toEqual([])
  })

  test('a sender that declares more bytes than it sends, and hangs up: what is whole is delivered', async () => {
    await using server = await serve()
    openSocket(server.port).socket.end(head(`Content-Length: ${delivery.length + 1}`) + delivery)
    await eventually(() => expect(server.received).toEqual([lowEnergyDelivery()]))
  })

  test('drain waits for a delivery whose body is still arriving', async () => {
    const arrived = deferred<void>()
    await using server = await serve(() => arrived.resolve())
    const { socket, closed } = openSocket(server.port)
    socket.write(withLength + delivery.slice(0, 50))
    await arrived.promise
    await new Promise(setImmediate)
    const received = server.receiver.drain().then(() => server.received.length)
    socket.end(delivery.slice(50))
    expect(await received).toBe(1)
    await closed()
  })
})

describe('after a body parser', () => {
  /** Reads the stream, and leaves `body` as a body parser does. */
  const parsed =
    (leave: (text: string) => unknown) => async (request: IncomingMessage & { body: unknown }) => {
      let text = ''
      for await (const chunk of request) text += chunk
      request.body = leave(text)
    }

  test('the first body that was read before is logged, and the connection is kept', async () => {
    await using server = await serve(parsed(JSON.parse))
    const { socket, closed } = openSocket(server.port)
    const chunked = `${head('Transfer-Encoding: chunked')}${delivery.length.toString(16)}\r\n${delivery}\r\n0\r\n\r\n`
    socket.end(chunked.repeat(2))
    const answers = await closed()
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(Array(2).fill('HTTP/1.1 204'))
    expect(answers).not.toMatch(/connection: close/)
    expect(server.received).toEqual(Array(2).fill(lowEnergyDelivery()))
    const warnings = server.lines.filter(({ level }) => level === 'warn')
    expect(warnings).toMatchObject([{ fields: { event: 'callback.parsed-before' } }])
  })

  test('nothing in the body next to an unread stream: it is read', async () => {
    const empty = [{}, '', null, undefined, Buffer.alloc(0)]
    const bodies = [...empty]
    await using server = await serve((request: { body: unknown }) => {
      request.body = bodies.shift()
    })
    for (const _ of empty) await server.post(delivery)
    expect(server.received).toEqual(empty.map(lowEnergyDelivery))
  })

  test('rawBody counts beside an empty body', async () => {
    const keepRaw = parsed(() => ({}))
    await using server = await serve(async (request: IncomingMessage & { body: unknown }) => {
      await keepRaw(request)
      Object.assign(request, { rawBody: Buffer.from(delivery) })
    })
    await server.post(delivery)
    expect(server.received).toEqual([lowEnergyDelivery()])
  })

  test('what is left of a stream that was read: onInvalid with the reviewed message, 204', async () => {
    const readInPart = async (request: IncomingMessage) => {
      await once(request, 'readable')
      request.read(10)
    }
    const throwing = (request: object) => {
      Object.defineProperty(request, 'body', {
        get() {
          throw new Error('Invalid JSON')
        },
      })
    }
    const messages: Record<string, string> = {}
    for (const [what, read] of [
      ...[undefined, 5].map((body) => [`${inspect(body)} as the body`, parsed(() => body)] as const),
      ['a part of the stream', readInPart] as const,
      ['a body that throws', throwing] as const,
    ]) {
      await using server = await serve(read)
      expect((await server.post(delivery)).status).toBe(204)
      messages[what] = server.problems().join()
      if (read === throwing) {
        messages['what is logged once'] = server.lines[0]?.message ?? ''
      }
    }
    await expectPage('bodies-read-before', messages)
  })

  test('an empty body that was read before is reported as empty', async () => {
    await using server = await serve(parsed(() => undefined))
    const { socket, status } = openSocket(server.port)
    socket.write(head('Content-Length: 0'))
    expect(await status()).toBe(204)
    socket.destroy()
    expect(server.problems()).toEqual(['the body is empty'])
  })
})

describe('unusual requests and responses', () => {
  /** A request without a connection, and what it is answered with. */
  function handleAlone(request: Readable & { body?: unknown }) {
    const { handler, ...receiving } = receive()
    const response = { statusCode: 0, headersSent: false, setHeader() {}, end: vi.fn() }
    handler(Object.assign(request, { method: 'POST', headers: { token: 'the-current-secret' } }), response)
    const answered = () => eventually(() => expect(response.end).toHaveBeenCalledOnce())
    return { ...receiving, answered, response }
  }

  test.each<[string, unknown]>([
    ['an object', lowEnergyDelivery()],
    ['text', delivery],
    ['bytes', Buffer.from(delivery)],
  ])(
    'one with %s and a stream that is never read, as platforms without a server make them',
    async (_, body) => {
      const { answered, response, received } = handleAlone(Object.assign(new PassThrough(), { body }))
      await answered()
      expect([response.statusCode, received.length]).toEqual([204, 1])
    },
  )

  test('one that breaks off with an error, or was destroyed before without one', async () => {
    const request = new PassThrough()
    const broken = handleAlone(request)
    request.write('{')
    await new Promise(setImmediate)
    request.destroy(new Error('reset'))
    await broken.answered()
    expect(broken.errors[0]?.bodyText).toBe('{')
    const destroyed = handleAlone(new PassThrough().destroy())
    await destroyed.answered()
    const problems = ['the body broke off with the connection']
    expect([broken.problems(), destroyed.problems()]).toEqual([problems, problems])
  })

  test('one whose body is too large stays open for its answer', async () => {
    const request = new PassThrough()
    const { answered, response } = handleAlone(request)
    request.write(Buffer.alloc(2 ** 20 + 1))
    await answered()
    expect([response.statusCode, request.destroyed]).toEqual([413, false])
  })

  test('one that something else has answered', async () => {
    const { handler, lines } = receive()
    await using server = await serverOf((request, response) => {
      response.writeHead(202).end()
      handler(request, response)
    })
    // What is refused is not read: then the connection is closed, if that can still be said.
    expect((await server.post(delivery, { token: 'x' })).status).toBe(202)
    expect(lines).toMatchObject([{ fields: { event: 'callback.refused' } }])
  })
})

test('over node:http2 a delivery is handled, a stranger refused, and a body that breaks off goes to onInvalid', async () => {
  const { handler, received, problems } = receive()
  const server = createHttp2Server(handler)
  const client = connectHttp2(`http://127.0.0.1:${await listen(server)}`)
  const open = (token: string) => client.request({ ':method': 'POST', token }, { endStream: false })
  for (const [token, status] of [['the-current-secret', 204] as const, ['x', 401] as const]) {
    const stream = open(token).end(delivery)
    const [answer] = await once(stream, 'response')
    expect(answer[':status']).toBe(status)
    stream.destroy()
  }
  expect(received).toHaveLength(1)
  const broken = open('the-current-secret')
  broken.on('error', () => {})
  const arrived = once(server, 'request')
  broken.write('{')
  await arrived
  broken.close(8)
  await eventually(() => expect(problems()).toHaveLength(1))
  client.close()
  server.close()
})
