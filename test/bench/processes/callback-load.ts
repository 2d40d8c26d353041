/** The service as far as callbacks need it: keep-alive connections that send the next as soon as one is answered. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { callbackToken, delivery } from '../deliveries.js'
import { serve } from '../processes.js'

/** The same bytes for every server, written to a bare socket: the load must not be what the figures show. */
const callback = [
  'POST /notifications HTTP/1.1',
  'host: 127.0.0.1',
  'content-type: application/json',
  `token: ${callbackToken}`,
  `content-length: ${Buffer.byteLength(delivery)}`,
  '',
  delivery,
].join('\r\n')

export interface AnswerTimes {
  readonly answered: number
  readonly elapsedMs: number
  /** What 99 of 100 answers took at most. */
  readonly p99Ms: number
}

type Connection = Awaited<ReturnType<typeof open>>

let connections: readonly Connection[] = []

async function open(port: number) {
  const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1')
  let onAnswer: (error?: Error) => void = () => {}
  socket.on('data', (head: string) => {
    // An answer without a body comes in one piece.
    onAnswer(/^HTTP\/1.1 204 .*\r\n\r\n$/s.test(head) ? undefined : new Error(`answered ${head}`))
  })
  socket.on('error', (error) => onAnswer(error))
  socket.on('close', () => onAnswer(new Error('the server closed a connection')))
  await once(socket, 'connect')
  return {
    send: () =>
      new Promise<void>((resolve, reject) => {
        onAnswer = (error) => (error ? reject(error) : resolve())
        socket.write(callback, 'latin1')
      }),
    close: () => {
      onAnswer = () => {}
      socket.destroy()
    },
  }
}

const functions = {
  open: async ({ port, count }: { port: number; count: number }) => {
    connections = await Promise.all(Array.from({ length: count }, () => open(port)))
  },
  /** Sends over every connection, and resolves when all are answered. */
  sendFor: async (runMs: number): Promise<AnswerTimes> => {
    const beganAt = performance.now()
    const times: number[] = []
    const sendOver = async ({ send }: Connection) => {
      for (let at = beganAt; at < beganAt + runMs; ) {
        await send()
        const answeredAt = performance.now()
        times.push(answeredAt - at)
        at = answeredAt
      }
    }
    await Promise.all(connections.map(sendOver))
    const elapsedMs = performance.now() - beganAt
    times.sort((a, b) => a - b)
    return { answered: times.length, elapsedMs, p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
  },
  close: () => {
    for (const connection of connections) connection.close()
  },
}
export type CallbackLoadFunctions = typeof functions
serve(functions)
