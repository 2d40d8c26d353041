import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { PassThrough, type Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import {
  DeliveryReceiver,
  type DeliveryReceiverOptions,
  toNodeHandler,
} from 'notification-subscriber/webhooks'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { deferred } from '../../support/deferred.js'
import { eventually } from '../../support/eventually.js'
import { expectPage } from '../../support/message-page.js'
import { lowEnergyDelivery } from '../deliveries.js'
import { head, openSocket, recordingLogger, recordingOnInvalid, secrets, serverOf } from '../support.js'

const delivery = JSON.stringify(lowEnergyDelivery())

// Node.js warns once in a process of a header that HTTP/2 does not have.
const warn = vi.spyOn(process, 'emitWarning')
afterAll(() => expect(warn).not.toHaveBeenCalled())
const withLength = head(`Content-Length: ${delivery.length}`)

/** A server with a receiver that keeps what it gets; `before` stands for a middleware. */
async function serve(options: Partial<DeliveryReceiverOptions> = {}, before?: (request: never) => unknown) {
  const { onInvalid, errors, problems } = recordingOnInvalid()
  const { logger, lines } = recordingLogger()
  const received: unknown[] = []
  const settings = { secrets, onInvalid, logger, ...options } as DeliveryReceiverOptions
  const receiver = new DeliveryReceiver(settings).onAny((_, context) => received.push(context.delivery))
  const handler = toNodeHandler(receiver)
  const listener: RequestListener = async (request, response) => {
    await before?.(request as never)
    handler(request, response)
  }
  const server = await serverOf(before ? listener : handler)
  return Object.assign(server, { receiver, received, errors, problems, lines })
}

test('is an async function: restify refuses others that do not take `next`', () => {
  const handler = toNodeHandler(new DeliveryReceiver({ secrets }))
  expect(handler.constructor.name).toBe('AsyncFunction')
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
    for (const framing of ['Content-Length: 99999999', 'Transfer-Encoding: chunked']) {
      const { socket, closed } = openSocket(server.port)
      socket.write(`POST / HTTP/1.1\r\nHost: a\r\nToken: x\r\n${framing}\r\n\r\n`)
      expect(await closed()).toMatch(/^HTTP\/1.1 401 [\s\S]*connection: close/)
    }
  })
})

describe('bodies are read, whatever the sender does', () => {
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

  test('in one piece after a while, and after a pause by something before', async () => {
    await using server = await serve({}, (request: IncomingMessage) => {
      request.pause()
      return sleep(5)
    })
    const { socket, status } = openSocket(server.port)
    socket.write(withLength)
    await sleep(20)
    socket.write(delivery)
    expect(await status()).toBe(204)
    expect(server.received).toHaveLength(1)
  })

  test.each(['before', 'after'])(
    'heard by something else, too, that listens %s the receiver',
    async (order) => {
      const received: unknown[] = []
      const handler = toNodeHandler(new DeliveryReceiver({ secrets }).onAny(({ id }) => received.push(id)))
      const heard: Buffer[] = []
      await using server = await serverOf((request, response) => {
        if (order === 'after') handler(request, response)
        request.on('data', (chunk: Buffer) => heard.push(chunk))
        if (order === 'before') handler(request, response)
      })
      const { socket, status } = openSocket(server.port)
      socket.write(withLength + delivery)
      expect(await status()).toBe(204)
      expect(Buffer.concat(heard).toString()).toBe(delivery)
      expect(received).toHaveLength(1)
    },
  )

  test.each(['utf8', 'base64'] as const)('as text, after setEncoding(%j)', async (encoding) => {
    await using server = await serve({}, (request: IncomingMessage) => void request.setEncoding(encoding))
    const umlauts = delivery.replace('alice', 'älïce 😀')
    expect((await server.post(umlauts)).status).toBe(204)
    expect(server.received).toEqual([JSON.parse(umlauts)])
  })

  test('a sender that hangs up in the body: the handlers are not called, onInvalid gets what was there', async () => {
    let arrived = 0
    await using server = await serve({}, () => {
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
    expect((await server.post(delivery)).status).toBe(204)
  })

  test('a sender that declares more bytes than it sends, and hangs up: what is whole is delivered', async () => {
    await using server = await serve()
    const { socket } = openSocket(server.port)
    socket.end(head(`Content-Length: ${delivery.length + 1}`) + delivery)
    await eventually(() => expect(server.received).toEqual([lowEnergyDelivery()]))
  })

  test('drain waits for a delivery whose body is still arriving', async () => {
    const arrived = deferred<void>()
    await using server = await serve({}, () => arrived.resolve())
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

  test('the first body that was read before is logged', async () => {
    await using server = await serve({}, parsed(JSON.parse))
    for (let time = 0; time < 2; time += 1) await server.post(delivery)
    await server.post(delivery, {})
    expect(server.received).toEqual([lowEnergyDelivery(), lowEnergyDelivery()])
    expect(server.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { fields: { event: 'callback.parsed-before' } },
      { fields: { event: 'callback.refused' } },
    ])
  })

  test.each([
    ['the-current-secret', 'HTTP/1.1 204'],
    ['wrong', 'HTTP/1.1 401'],
  ])('a body in chunks does not cost the connection: token %j, %s', async (secret, status) => {
    await using server = await serve({}, parsed(JSON.parse))
    const { socket, closed } = openSocket(server.port)
    const start = `POST / HTTP/1.1\r\nHost: a\r\nToken: ${secret}\r\nTransfer-Encoding: chunked\r\n\r\n`
    socket.end(`${start}${delivery.length.toString(16)}\r\n${delivery}\r\n0\r\n\r\n`.repeat(2))
    const answers = await closed()
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual([status, status])
    expect(answers).not.toMatch(/connection: close/)
  })

  test('nothing in the body next to an unread stream: it is read', async () => {
    const empty = [{}, '', null, undefined, Buffer.alloc(0)]
    const bodies = [...empty]
    await using server = await serve({}, (request: { body: unknown }) => {
      request.body = bodies.shift()
    })
    for (const _ of empty) expect((await server.post(delivery)).status).toBe(204)
    expect(server.received).toEqual(empty.map(lowEnergyDelivery))
  })

  test.each([undefined, {}])('rawBody counts beside %j as the body', async (body) => {
    const keepRaw = parsed(() => body)
    await using server = await serve({}, async (request: IncomingMessage & { body: unknown }) => {
      await keepRaw(request)
      Object.assign(request, { rawBody: Buffer.from(delivery) })
    })
    expect((await server.post(delivery)).status).toBe(204)
    expect(server.received).toEqual([lowEnergyDelivery()])
  })

  test('what is left of a stream that was read: onInvalid with the reviewed message, 204', async () => {
    const readInPart = async (request: IncomingMessage) => {
      await once(request, 'readable')
      request.read(10)
    }
    const messages: Record<string, string> = {}
    for (const [what, read] of [
      ...[undefined, null, 5, []].map(
        (body) => [`${inspect(body)} as the body`, parsed(() => body)] as const,
      ),
      ['a part of the stream', readInPart] as const,
    ]) {
      await using server = await serve({}, read)
      expect((await server.post(delivery)).status).toBe(204)
      messages[what] = server.problems().join()
    }
    await using server = await serve({}, parsed(JSON.parse))
    await server.post(delivery)
    messages['an object, which is taken and logged'] = server.lines[0]?.message ?? ''
    await expectPage('bodies-read-before', messages)
  })

  test('an empty body that was read before is reported as empty', async () => {
    const nothing = parsed(() => undefined)
    await using server = await serve({}, nothing)
    for (const framing of ['Content-Length: 0', 'Transfer-Encoding: chunked']) {
      const { socket, status } = openSocket(server.port)
      socket.write(head(framing) + (framing.startsWith('T') ? '0\r\n\r\n' : ''))
      expect(await status()).toBe(204)
      socket.destroy()
    }
    expect(server.problems()).toEqual(Array(2).fill('the body is empty'))
  })

  test('a req.body that throws when it is asked for', async () => {
    await using server = await serve({}, (request: object) => {
      Object.defineProperty(request, 'body', {
        get() {
          throw new Error('Invalid JSON')
        },
      })
    })
    expect((await server.post(delivery)).status).toBe(204)
    expect(server.problems()).toEqual(['the body cannot be read (Invalid JSON)'])
    expect(server.lines).toMatchObject([{ fields: { event: 'callback.parsed-before' } }, { level: 'error' }])
  })
})

describe('unusual requests and responses', () => {
  /** A request without a connection, and what it is answered with. */
  function handleAlone(request: Readable & { body?: unknown }, moreHeaders = {}) {
    const { onInvalid, errors, problems } = recordingOnInvalid()
    const received: unknown[] = []
    const receiver = new DeliveryReceiver({ secrets, onInvalid }).onAny(({ id }) => received.push(id))
    const response = { statusCode: 0, headersSent: false, setHeader() {}, end: vi.fn() }
    const headers = { token: 'the-current-secret', ...moreHeaders }
    toNodeHandler(receiver)(Object.assign(request, { method: 'POST', headers }), response)
    const answered = () => eventually(() => expect(response.end).toHaveBeenCalledOnce())
    return { answered, response, received, errors, problems }
  }

  test.each<[string, unknown]>([
    ['an object', lowEnergyDelivery()],
    ['text', delivery],
    ['bytes', Buffer.from(delivery)],
    ['an ArrayBuffer', Uint8Array.from(Buffer.from(delivery)).buffer],
  ])(
    'one with %s and a stream that is never read, as platforms without a server make them',
    async (_, body) => {
      const { answered, response, received } = handleAlone(Object.assign(new PassThrough(), { body }))
      await answered()
      expect([response.statusCode, received.length]).toEqual([204, 1])
    },
  )

  test('one that breaks off with an error', async () => {
    const request = new PassThrough()
    const { answered, problems, errors } = handleAlone(request)
    request.write('{')
    await new Promise(setImmediate)
    const reset = new Error('reset')
    request.destroy(reset)
    await answered()
    expect(problems()).toEqual(['the body broke off with the connection'])
    expect(errors[0]?.cause).toBe(reset)
    expect(errors[0]?.bodyText).toBe('{')
  })

  test('one whose body is too large stays open for its answer', async () => {
    const request = new PassThrough()
    const { answered, response } = handleAlone(request)
    request.write(Buffer.alloc(2 ** 20 + 1))
    await answered()
    expect([response.statusCode, request.destroyed]).toEqual([413, false])
  })

  test('one that closes without an error, or was destroyed before', async () => {
    const closing = new PassThrough()
    const closed = handleAlone(closing)
    await sleep(1)
    closing.destroy()
    const destroyed = handleAlone(new PassThrough().destroy())
    for (const { answered, problems } of [closed, destroyed]) {
      await answered()
      expect(problems()).toEqual(['the body broke off with the connection'])
    }
  })

  test('one that something else has answered', async () => {
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger })
    await using server = await serverOf((request, response) => {
      response.writeHead(202).end()
      toNodeHandler(receiver)(request, response)
    })
    expect((await server.post(delivery)).status).toBe(202)
    expect((await fetch(server.url)).status).toBe(202)
    expect(lines).toMatchObject([{ level: 'debug' }, { fields: { event: 'callback.probed' } }])
  })

  test('a response that throws', async () => {
    const { logger, lines } = recordingLogger()
    const request = Object.assign(new PassThrough(), { method: 'PUT', headers: {} })
    const end = () => {
      throw new Error('broken')
    }
    const response = { statusCode: 0, headersSent: false, setHeader() {}, end }
    toNodeHandler(new DeliveryReceiver({ secrets, logger }))(request, response)
    await eventually(() => expect(lines).toHaveLength(2))
    const err = expect.objectContaining({ message: 'broken' })
    const fields = { event: 'callback.unanswered', status: 405, err }
    expect(lines).toMatchObject([{ level: 'warn' }, { level: 'error', fields }])
  })
})

describe('over node:http2', () => {
  /** A server with a receiver, and a client that opens requests to it. */
  async function serveHttp2(receiver: DeliveryReceiver) {
    const server = createHttp2Server(toNodeHandler(receiver)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return {
      server,
      open: (token: string) => client.request({ ':method': 'POST', token }, { endStream: false }),
      [Symbol.dispose]() {
        client.close()
        server.close()
      },
    }
  }

  test('a delivery is handled, a stranger is refused, and a body that breaks off goes to onInvalid', async () => {
    const { onInvalid, problems } = recordingOnInvalid()
    const received: unknown[] = []
    const receiver = new DeliveryReceiver({ secrets, onInvalid }).onAny(({ id }) => received.push(id))
    using http2 = await serveHttp2(receiver)
    for (const [token, status] of [['the-current-secret', 204] as const, ['x', 401] as const]) {
      const stream = http2.open(token).end(delivery)
      const [answer] = await once(stream, 'response')
      expect(answer[':status']).toBe(status)
      stream.destroy()
    }
    expect(received).toHaveLength(1)
    const broken = http2.open('the-current-secret')
    broken.on('error', () => {})
    const arrived = once(http2.server, 'request')
    broken.write('{')
    await arrived
    broken.close(8)
    await eventually(() => expect(problems()).toHaveLength(1))
  })
})
