/** What the receiver's tests share: a receiver that keeps what it gets, and servers to send bytes to. */
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerOptions } from 'node:http'
import { connect } from 'node:net'
import Fastify from 'fastify'
import {
  type CallbackRequest,
  DeliveryReceiver,
  type DeliveryReceiverOptions,
  type InvalidDeliveryError,
  toFastifyPlugin,
  toLambdaHandler,
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'
import { serving } from '../support/listen.js'
import { recordingLogger } from '../support/recording-logger.js'
import { lowEnergyDelivery } from './deliveries.js'

export const secrets = { token: ['the-current-secret', 'the-previous-secret'] }
export const authenticated = { token: 'the-current-secret' }

const body = JSON.stringify(lowEnergyDelivery())

export const post = (headers: CallbackRequest['headers'] = authenticated): CallbackRequest => ({
  method: 'POST',
  headers,
  body,
})

/** A receiver that keeps what it gets and logs; `problems` is what `onInvalid` got, as one sentence per body. */
export function recordingReceiver(options: Partial<DeliveryReceiverOptions> = {}) {
  const { lines, ...logger } = recordingLogger()
  const errors: InvalidDeliveryError[] = []
  const onInvalid = (error: InvalidDeliveryError) => errors.push(error)
  const settings = { secrets, logger, onInvalid, ...options } as DeliveryReceiverOptions
  const received: unknown[] = []
  const receiver = new DeliveryReceiver(settings).onAny((_, { delivery }) => received.push(delivery))
  const problems = () => errors.flatMap(({ issues }) => issues.map((issue) => issue.message))
  return { receiver, received, errors, problems, lines }
}

export async function serverOf(listener: RequestListener, options: ServerOptions = {}) {
  const server = await serving(createServer(options, listener))
  const url = `http://${server.host}/`
  return {
    ...{ ...server, url },
    post: (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = authenticated) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', ...headers },
      }),
  }
}

/** The head of a POST over HTTP/1.1, with the current secret. */
export const head = (...lines: string[]) =>
  ['POST / HTTP/1.1', 'Host: localhost', 'Token: the-current-secret', ...lines, '', ''].join('\r\n')

/** A connection to send bytes on and to read everything that comes back, until it is closed. */
export function openSocket(port: number) {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.setEncoding('latin1').on('data', (text) => {
    received += text
  })
  socket.on('error', () => {})
  return {
    socket,
    received: () => received,
    closed: () => (socket.closed ? received : once(socket, 'close').then(() => received)),
    /** The status line of the first answer, as soon as it is there. */
    async status() {
      while (!received.includes('\r\n')) {
        await (socket.closed ? Promise.reject(new Error('closed without an answer')) : once(socket, 'data'))
      }
      return Number(received.split(' ')[1])
    },
  }
}

/** One way for a callback to reach a receiver. */
interface Transport extends AsyncDisposable {
  send(method: string, headers: Record<string, string>, body?: Uint8Array<ArrayBuffer>): Promise<Answer>
}

interface Answer {
  readonly status: number
  readonly allow: string | null | undefined
  readonly length: number
}

export const transports: readonly [name: string, open: (receiver: DeliveryReceiver) => Promise<Transport>][] =
  [
    [
      'receiver.handle',
      async (receiver) =>
        transport(async (method, headers, body) => {
          const answer = await receiver.handle({ method, headers, body })
          return { status: answer.status, allow: answer.headers.allow, length: 0 }
        }),
    ],
    [
      'toWebHandler',
      async (receiver) =>
        transport(async (...request) =>
          answerOf(
            await toWebHandler(receiver)(new Request('https://app.example.com', requestOf(...request))),
          ),
        ),
    ],
    [
      'toLambdaHandler',
      async (receiver) =>
        transport(async (method, headers, bytes) => {
          const body = bytes && Buffer.from(bytes).toString('base64')
          const event = { requestContext: { http: { method } }, headers, body, isBase64Encoded: true }
          const answer = await toLambdaHandler(receiver)(event)
          return { status: answer.statusCode, allow: answer.headers.allow, length: answer.body.length }
        }),
    ],
    ['toNodeHandler', (receiver) => served(toNodeHandler(receiver))],
    [
      'toFastifyPlugin',
      async (receiver) => {
        const app = Fastify()
        await app.register(toFastifyPlugin(receiver, { path: '/' }))
        await app.ready()
        return served(app.routing)
      },
    ],
  ]

const transport = (send: Transport['send'], close = async () => {}): Transport => ({
  send,
  [Symbol.asyncDispose]: close,
})

async function served(listener: RequestListener): Promise<Transport> {
  const server = await serverOf(listener)
  const send: Transport['send'] = async (...request) =>
    answerOf(await fetch(server.url, requestOf(...request)))
  return transport(send, () => server[Symbol.asyncDispose]())
}

function requestOf(...[method, headers, body]: Parameters<Transport['send']>): RequestInit {
  return body === undefined ? { method, headers } : { method, headers, body }
}

async function answerOf(response: Response): Promise<Answer> {
  const { byteLength } = await response.arrayBuffer()
  return { status: response.status, allow: response.headers.get('allow'), length: byteLength }
}
