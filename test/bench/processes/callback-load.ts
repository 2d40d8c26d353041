/** The service as far as callbacks need it: keep-alive connections that send the next as soon as one is answered. */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { callbackToken, delivery } from '../deliveries.js'
import { message, readMessages } from '../http-messages.js'
import { serve } from '../processes.js'

/** The same bytes for every server, signed for the one that checks signatures. */
const signed = message(
  'POST /notifications HTTP/1.1',
  {
    ...{ host: '127.0.0.1', 'content-type': 'application/json', token: callbackToken },
    'x-github-event': 'push',
    'x-github-delivery': '6f1c3c1e-5a7c-4c3a-9f61-0b1f0f5b7a11',
    'x-hub-signature-256': `sha256=${createHmac('sha256', callbackToken).update(delivery).digest('hex')}`,
  },
  delivery,
)

export interface AnswerTimes {
  readonly answered: number
  /** What 99 of 100 answers took at most. */
  readonly p99Ms: number
}

let connections: readonly Connection[] = []

class Connection {
  readonly #socket: Socket
  #onAnswer: (error?: Error) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    readMessages(socket, (head) => {
      this.#onAnswer(/^HTTP\/1.1 20[04] /.test(head) ? undefined : new Error(`answered ${head}`))
    })
    socket.on('error', (error) => this.#onAnswer(error))
    socket.on('close', () => this.#onAnswer(new Error('the server closed a connection')))
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Connection(socket)
  }

  /** Sends what `next` returns, one after the other, until that is undefined; resolves with how many there were. */
  send(next: () => string | undefined): Promise<number> {
    let answered = 0
    return new Promise((resolve, reject) => {
      const sendNext = () => {
        const text = next()
        if (text === undefined) resolve(answered)
        else this.#socket.write(text, 'latin1')
      }
      this.#onAnswer = (error) => {
        if (error) return reject(error)
        answered++
        sendNext()
      }
      sendNext()
    })
  }

  close(): void {
    this.#onAnswer = () => {}
    this.#socket.destroy()
  }
}

/** Sends over every connection; resolves when all are answered, with how many there were. */
async function sendOverAll(next: () => string | undefined): Promise<number> {
  const answered = await Promise.all(connections.map((connection) => connection.send(next)))
  return answered.reduce((sum, count) => sum + count, 0)
}

const functions = {
  open: async ({ port, count }: { port: number; count: number }) => {
    connections = await Promise.all(Array.from({ length: count }, () => Connection.open(port)))
  },
  sendFor: (runMs: number): Promise<number> => {
    const endsAt = performance.now() + runMs
    return sendOverAll(() => (performance.now() < endsAt ? signed : undefined))
  },
  timeFor: async (runMs: number): Promise<AnswerTimes> => {
    const endsAt = performance.now() + runMs
    const times: number[] = []
    await Promise.all(
      connections.map(async (connection) => {
        while (performance.now() < endsAt) {
          const startedAt = performance.now()
          let left = 1
          await connection.send(() => (left-- > 0 ? signed : undefined))
          times.push(performance.now() - startedAt)
        }
      }),
    )
    times.sort((a, b) => a - b)
    return { answered: times.length, p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
  },
  sendTimes: (times: number): Promise<number> => {
    let left = times
    return sendOverAll(() => (left-- > 0 ? signed : undefined))
  },
  close: () => {
    for (const connection of connections) connection.close()
  },
}
export type CallbackLoadFunctions = typeof functions
serve(functions)
