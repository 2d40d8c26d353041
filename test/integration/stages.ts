/** Where and how a connection breaks, and what the client must make of it. */
import { gzipSync } from 'node:zlib'
import type { Operation } from '../support/operations.js'
import type { Script } from '../support/scripted-server.js'

/**
 * - `not sent`: no connection was made.
 * - `not sent in time`: the same, found out by the deadline.
 * - `lost`: sent, without a whole answer.
 * - `late`: sent, and the deadline came before the answer.
 * - `unusable`: a success whose body is needed and cannot be read.
 * - `not the service`: a success from something else.
 * - `success`: unusual, but an answer.
 */
export type Outcome =
  | 'not sent'
  | 'not sent in time'
  | 'lost'
  | 'late'
  | 'unusable'
  | 'not the service'
  | 'success'

export interface Stage {
  readonly name: string
  readonly outcome: Outcome
  readonly script: (operation: Operation) => Script
}

/** A healthy answer in its three pieces. */
const head = ({ status, body }: Operation) => `HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\n\r\n`
const whole = (operation: Operation) => head(operation) + operation.body
const half = (text: string) => text.slice(0, text.length / 2)

/** Answers a whole request with these bytes, and then does the same with the connection. */
const answer =
  (bytes: (operation: Operation) => string | Uint8Array, then: 'close' | 'reset' | 'stall' | 'go on') =>
  (operation: Operation): Script =>
  async (connection) => {
    await connection.request()
    await connection.write(bytes(operation))
    if (then !== 'go on') await connection[then]()
  }

const withHeaders = (headers: readonly string[], body: (operation: Operation) => string) =>
  answer(
    (operation) => [`HTTP/1.1 ${operation.status}`, ...headers, '', body(operation)].join('\r\n'),
    'close',
  )

const gzipped = (operation: Operation) => {
  const body = gzipSync(operation.body)
  const headers = `content-encoding: gzip\r\ncontent-length: ${body.length}`
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${operation.status}\r\n${headers}\r\n\r\n`), body])
}

const page = '<!doctype html>\n<title>Sign in</title>\n<p>Please sign in to the network.</p>'

export const stages: readonly Stage[] = [
  // Before the request.
  {
    name: 'accepted and closed',
    outcome: 'not sent',
    script: () => (connection) => connection.close(),
  },
  { name: 'accepted and reset', outcome: 'not sent', script: () => (connection) => connection.reset() },
  {
    name: 'garbage bytes in place of TLS',
    outcome: 'not sent',
    script: () => async (connection) => {
      await connection.writeRaw('\x16garbage\r\n\r\n')
      await connection.close()
    },
  },
  {
    name: 'accepted, and TLS never answers',
    outcome: 'not sent in time',
    script: () => (connection) => connection.stall(),
  },
  // While the request is read.
  ...(['first byte', 'half of the body', 'everything'] as const).flatMap((part): Stage[] =>
    (['close', 'reset', 'stall'] as const).map((then) => ({
      name: `${then} after the request's ${part}`,
      outcome: then === 'stall' ? 'late' : 'lost',
      script: () => async (connection) => {
        await connection.request(part)
        await connection[then]()
      },
    })),
  ),
  // While the answer is written.
  ...(['close', 'reset', 'stall'] as const).flatMap((then): Stage[] => {
    const outcome = then === 'stall' ? 'late' : 'lost'
    return [
      {
        name: `${then} in the answer's headers`,
        outcome,
        script: answer((operation) => half(head(operation)), then),
      },
      {
        name: `${then} in the answer's body`,
        outcome,
        script: answer((operation) => head(operation) + half(operation.body), then),
      },
      {
        name: `${then} one byte before the answer's end`,
        outcome,
        script: answer((operation) => whole(operation).slice(0, -1), then),
      },
    ]
  }),
  // Answers that are none.
  {
    name: 'garbage bytes in place of an answer',
    outcome: 'lost',
    script: answer(() => '\x00\x01garbage\r\n\r\n', 'close'),
  },
  {
    name: 'garbage bytes between the TLS records',
    outcome: 'lost',
    script: () => async (connection) => {
      await connection.request()
      await connection.writeRaw('garbage that is no TLS record')
      await connection.reset()
    },
  },
  {
    name: 'a chunk size that is no number',
    outcome: 'lost',
    script: withHeaders(['transfer-encoding: chunked'], ({ body }) => `zz\r\n${body}\r\n0\r\n\r\n`),
  },
  {
    name: 'chunks without an end',
    outcome: 'lost',
    script: withHeaders(
      ['transfer-encoding: chunked'],
      ({ body }) => `${body.length.toString(16)}\r\n${body}\r\n`,
    ),
  },
  {
    name: 'a chunk shorter than its size',
    outcome: 'lost',
    script: withHeaders(['transfer-encoding: chunked'], ({ body }) => `fff\r\n${body}\r\n0\r\n\r\n`),
  },
  {
    name: 'chunks and a content-length',
    outcome: 'lost',
    script: withHeaders(['transfer-encoding: chunked', 'content-length: 5'], ({ body }) => body),
  },
  {
    name: 'a content-length that is no number',
    outcome: 'lost',
    script: withHeaders(['content-length: many'], ({ body }) => body),
  },
  {
    name: 'two content-lengths',
    outcome: 'lost',
    script: withHeaders(['content-length: 5', 'content-length: 6'], ({ body }) => body),
  },
  {
    name: 'a content-length beyond the body',
    outcome: 'lost',
    script: withHeaders(['content-length: 9999'], ({ body }) => body),
  },
  {
    name: '101 Switching Protocols',
    outcome: 'lost',
    script: answer(
      () => 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'close',
    ),
  },
  {
    // RFC 9110 section 15.2 asks clients to bear it; undici breaks the connection.
    name: '100 Continue that was not requested',
    outcome: 'lost',
    script: answer((operation) => `HTTP/1.1 100 Continue\r\n\r\n${whole(operation)}`, 'close'),
  },
  // Answers that cannot be used.
  {
    name: 'a content-length within the body',
    outcome: 'unusable',
    script: withHeaders(['content-length: 12'], ({ body }) => body),
  },
  {
    name: 'truncated JSON',
    outcome: 'unusable',
    script: answer(
      ({ status, body }) =>
        `HTTP/1.1 ${status}\r\ncontent-length: ${body.length - 1}\r\n\r\n${body.slice(0, -1)}`,
      'go on',
    ),
  },
  { name: 'a gzip body that was not requested', outcome: 'unusable', script: answer(gzipped, 'go on') },
  {
    name: 'an HTML page with 200',
    outcome: 'not the service',
    script: answer(
      () => `HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: ${page.length}\r\n\r\n${page}`,
      'go on',
    ),
  },
  // Unusual, but answers.
  {
    name: 'HTTP/1.0, ended by the end of the connection',
    outcome: 'success',
    script: answer(({ status, body }) => `HTTP/1.0 ${status}\r\n\r\n${body}`, 'close'),
  },
  {
    name: 'HTTP/1.1 without a length, ended by the end of the connection',
    outcome: 'success',
    script: withHeaders([], ({ body }) => body),
  },
  {
    name: '103 Early Hints before the answer',
    outcome: 'success',
    script: answer(
      (operation) => `HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n${whole(operation)}`,
      'go on',
    ),
  },
  {
    name: 'one byte at a time',
    outcome: 'success',
    script: (operation) => async (connection) => {
      await connection.request()
      for (const byte of whole(operation)) await connection.write(byte)
    },
  },
]
