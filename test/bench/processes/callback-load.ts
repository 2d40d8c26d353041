/** The service as far as callbacks need it: keep-alive connections that send the next as soon as one is answered. */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { callbackToken, delivery, deliveryOf } from '../deliveries.js'
import { message, readMessages } from '../http-messages.js'
import { serve } from '../processes.js'

interface Target {
  readonly port: number
  readonly connections: number
}

/** The same bytes for every server, signed for the one that checks signatures. */
const signed = request(delivery, {
  'x-github-event': 'push',
  'x-github-delivery': '6f1c3c1e-5a7c-4c3a-9f61-0b1f0f5b7a11',
  'x-hub-signature-256': `sha256=${createHmac('sha256', callbackToken).update(delivery).digest('hex')}`,
})

function request(body: string, headers: Readonly<Record<string, string>> = {}): string {
  const fields = { host: '127.0.0.1', 'content-type': 'application/json', token: callbackToken, ...headers }
  return message('POST /notifications HTTP/1.1', fields, body)
}

/**
 * Sends what `next` returns over every connection, one after the other, until that is undefined. Resolves when all
 * are answered, with how many there were.
 */
async function send({ port, connections }: Target, next: () => string | undefined): Promise<number> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  let answered = 0
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve, reject) => {
          const sendNext = () => {
            const text = next()
            if (text === undefined) resolve()
            else socket.write(text, 'latin1')
          }
          readMessages(socket, (head) => {
            if (!/^HTTP\/1.1 20[04] /.test(head)) return reject(new Error(`answered ${head}`))
            answered++
            sendNext()
          })
          socket.on('error', reject)
          socket.on('close', () => reject(new Error('the server closed a connection')))
          sendNext()
        }),
    ),
  )
  for (const socket of sockets) socket.removeAllListeners('close').destroy()
  return answered
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

const functions = {
  /** Sends the same delivery for some time. */
  sendFor: ({ runMs, ...target }: Target & { runMs: number }): Promise<number> => {
    const endsAt = performance.now() + runMs
    return send(target, () => (performance.now() < endsAt ? signed : undefined))
  },
  /** Sends one delivery for each subscription id below `ids`. */
  sendEach: ({ ids, ...target }: Target & { ids: number }): Promise<number> => {
    let id = 0
    return send(target, () => (id < ids ? request(JSON.stringify(deliveryOf(id++))) : undefined))
  },
}
export type CallbackLoadFunctions = typeof functions
serve(functions)
