/** Where and how a connection breaks, and what the client must make of it. */
import type { Operation } from '../support/operations.js'
import type { Script } from '../support/scripted-server.js'

/**
 * - `not sent`: no connection was made.
 * - `not sent in time`: the same, found out by the deadline.
 * - `lost`: sent, without a whole answer.
 * - `late`: sent, and the deadline came before the answer.
 * - `unusable`: a success whose body is needed and cannot be read.
 * - `success`: unusual, but an answer.
 */
export type Outcome = 'not sent' | 'not sent in time' | 'lost' | 'late' | 'unusable' | 'success'

export interface Stage {
  readonly name: string
  readonly outcome: Outcome
  readonly script: (operation: Operation) => Script
}

const head = ({ status, body }: Operation) => `HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\n\r\n`
const whole = (operation: Operation) => head(operation) + operation.body
const half = (text: string) => text.slice(0, text.length / 2)

type Then = 'close' | 'reset' | 'stall' | 'go on'
type Bytes = (operation: Operation) => string

/** Answers a whole request with these bytes, and then does the same with the connection. */
const answer =
  (bytes: Bytes, then: Then) =>
  (operation: Operation): Script =>
  async (connection) => {
    await connection.request()
    await connection.write(bytes(operation))
    if (then !== 'go on') await connection[then]()
  }

/** Headers after the status of a healthy answer, and a body; then the end of the connection. */
const withHeaders = (headers: readonly string[], body = (operation: Operation) => operation.body) =>
  answer(
    (operation) => [`HTTP/1.1 ${operation.status}`, ...headers, '', body(operation)].join('\r\n'),
    'close',
  )

const chunked = (body: (operation: Operation) => string) => withHeaders(['transfer-encoding: chunked'], body)

const switching = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'
const earlyHints = 'HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n'
const ends = ['close', 'reset', 'stall'] as const

type Row = readonly [name: string, outcome: Outcome, script: (operation: Operation) => Script]

const rows: readonly Row[] = [
  // Before the request.
  ['accepted and closed', 'not sent', () => (connection) => connection.close()],
  ['accepted and reset', 'not sent', () => (connection) => connection.reset()],
  [
    'garbage bytes in place of TLS',
    'not sent',
    () => async (connection) => {
      await connection.writeRaw('\x16garbage\r\n\r\n')
      await connection.close()
    },
  ],
  ['accepted, and TLS never answers', 'not sent in time', () => (connection) => connection.stall()],
  // While the request is read, and while the answer is written.
  ...ends.flatMap((then): Row[] => {
    const outcome = then === 'stall' ? 'late' : 'lost'
    const during = (['first byte', 'half of the body', 'everything'] as const).map(
      (part): Row => [
        `${then} after the request's ${part}`,
        outcome,
        () => async (connection) => {
          await connection.request(part)
          await connection[then]()
        },
      ],
    )
    return [
      ...during,
      [`${then} in the answer's headers`, outcome, answer((operation) => half(head(operation)), then)],
      [`${then} in the answer's body`, outcome, answer((each) => head(each) + half(each.body), then)],
      [`${then} one byte before the answer's end`, outcome, answer((each) => whole(each).slice(0, -1), then)],
    ]
  }),
  // Answers that are none.
  ['garbage bytes in place of an answer', 'lost', answer(() => '\x00\x01garbage\r\n\r\n', 'close')],
  [
    'garbage bytes between the TLS records',
    'lost',
    () => async (connection) => {
      await connection.request()
      await connection.writeRaw('garbage that is no TLS record')
      await connection.reset()
    },
  ],
  ['chunks without an end', 'lost', chunked(({ body }) => `${body.length.toString(16)}\r\n${body}\r\n`)],
  ['a content-length beyond the body', 'lost', withHeaders(['content-length: 9999'])],
  ['101 Switching Protocols', 'lost', answer(() => switching, 'close')],
  // RFC 9110 section 15.2 asks clients to bear it; undici breaks the connection.
  [
    '100 Continue that was not requested',
    'lost',
    answer((operation) => `HTTP/1.1 100 Continue\r\n\r\n${whole(operation)}`, 'close'),
  ],
  // An answer that cannot be used.
  ['a content-length within the body', 'unusable', withHeaders(['content-length: 12'])],
  // Unusual, but answers.
  [
    'HTTP/1.0, ended by the end of the connection',
    'success',
    answer(({ status, body }) => `HTTP/1.0 ${status}\r\n\r\n${body}`, 'close'),
  ],
  ['HTTP/1.1 without a length, ended by the end of the connection', 'success', withHeaders([])],
  ['103 Early Hints before the answer', 'success', answer((each) => earlyHints + whole(each), 'go on')],
  [
    'one byte at a time',
    'success',
    (operation) => async (connection) => {
      await connection.request()
      for (const byte of whole(operation)) await connection.write(byte)
    },
  ],
]

export const stages: readonly Stage[] = rows.map(([name, outcome, script]) => ({ name, outcome, script }))
