/** The body of a callback: reads it up to a limit, decompresses it, finds its JSON value, and says what is wrong with it. */
import { InvalidDeliveryError, type Issue } from '../errors.js'
import { BoundedBytes, readInto } from '../shared/bounded-bytes.js'
import { messageOf, wholeMessageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { settlesWithin } from '../shared/waits.js'
import type { RequestHeaders } from './headers.js'

/** How long a body may take to arrive, in milliseconds. */
export const bodyTimeoutMs = 10_000

/** What to do if something else has read the body. */
export const routeAdvice = 'put the route before every body parser (docs/receiver.md)'

/**
 * The body of a request, or `undefined` if it is too large. In an object, because a promise would look for a `then` in a
 * body: in all prototypes of bytes, which takes a tenth of a callback, and a parsed body may be a promise by mistake.
 */
export type ReadBody<Body = unknown> = { readonly body: Body } | undefined

/**
 * Reads pieces up to `maxBytes`, for a limited time.
 *
 * @param problemOf - the explanation of a thrown error: the rest of a sentence that begins with "the body"
 * @throws `InvalidDeliveryError` with the received part of the body
 */
export async function readPieces(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
  problemOf = (thrown: unknown) => `cannot be read (${messageOf(thrown)})`,
): Promise<ReadBody<Uint8Array>> {
  const collected = new BoundedBytes(maxBytes)
  const reading = readInto(collected, pieces)
  if (!(await settlesWithin(bodyTimeoutMs, reading))) {
    throw invalidDelivery(collected.bytes, `did not arrive within ${bodyTimeoutMs} ms`)
  }
  const isComplete = await reading.catch((thrown) => {
    throw invalidDelivery(collected.bytes, problemOf(thrown), thrown)
  })
  return isComplete ? { body: collected.bytes } : undefined
}

/** Reads a web stream as {@link readPieces} does, and cancels what is left of it. Throws if something else reads it. */
export async function readWebStream(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<ReadBody<Uint8Array>> {
  if (stream === null) return { body: new Uint8Array() }
  const reader = stream.getReader()
  try {
    return await readPieces(piecesOf(reader), maxBytes)
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Not the iterator of the stream, which not every runtime has. */
async function* piecesOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    if (!ArrayBuffer.isView(value)) throw new TypeError('it is no stream of bytes')
    // Accepts any view on bytes.
    yield new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  }
}

/**
 * Decodes the `content-encoding`, up to `maxBytes` of content: the service compresses nothing (docs/service.md, Delivery),
 * but a proxy may. Only `gzip` and `deflate`, which every runtime can decode.
 *
 * @throws `InvalidDeliveryError` with the encoded body
 */
export function decoded(
  read: ReadBody<Uint8Array>,
  headers: RequestHeaders,
  maxBytes: number,
): ReadBody | Promise<ReadBody> {
  const coding = headers.get('content-encoding')?.trim().toLowerCase()
  if (read === undefined || coding === undefined || coding === '' || coding === 'identity') return read
  return decode(read.body, coding, maxBytes)
}

async function decode(body: Uint8Array, coding: string, maxBytes: number): Promise<ReadBody> {
  // `x-gzip` means `gzip` (RFC 9110 section 8.4.1.3).
  const format = coding === 'x-gzip' ? 'gzip' : coding
  if (format !== 'gzip' && format !== 'deflate') {
    throw invalidDelivery(body, `is encoded with "${coding.slice(0, 50)}", not with gzip or deflate`)
  }
  try {
    // Narrows the type only: a body is never in shared memory.
    const content = new Blob([body as Uint8Array<ArrayBuffer>]).stream()
    return await readWebStream(content.pipeThrough(new DecompressionStream(format)), maxBytes)
  } catch (error) {
    throw unreadableBody(body, Object(error).cause ?? error)
  }
}

const byteOrderMark = '\uFEFF'
// `ignoreBOM` keeps the byte order mark, which `valueOfBody` leaves out.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

type Bytes = NonNullable<Parameters<(typeof utf8)['decode']>[0]>

/** An `ArrayBuffer` or any view on one. By tag and not by instanceof: other realms (a worker's vm, Jest) have their own. */
export function isBytes(body: unknown): body is Bytes {
  try {
    return ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
  } catch {
    // A `Proxy` may throw even here.
    return false
  }
}

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
export function isLarger(body: unknown, maxBytes: number): boolean {
  if (typeof body !== 'string') return isBytes(body) && body.byteLength > maxBytes
  // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
  return body.length > maxBytes || (body.length * 3 > maxBytes && new Blob([body]).size > maxBytes)
}

/**
 * The JSON value in text or bytes; a value that was parsed before is returned as it is.
 *
 * @throws `InvalidDeliveryError` for text or bytes without one; its message quotes nothing of them
 */
export function valueOfBody(body: unknown): unknown {
  if (typeof body !== 'string' && !isBytes(body)) return body
  const text = typeof body === 'string' ? body : textOf(body)
  try {
    return JSON.parse(text[0] === byteOrderMark ? text.slice(1) : text)
  } catch (error) {
    if (text.trim() === '') throw invalidDelivery(body, 'is empty')
    // Engines quote a few characters around the fault, and some of them name its position.
    const [where] = /position \d+|end of JSON/i.exec(wholeMessageOf(error)) ?? []
    throw invalidDelivery(body, where === undefined ? 'is not JSON' : `is not JSON (fault at ${where})`)
  }
}

function textOf(bytes: Bytes): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw invalidDelivery(bytes, 'is not UTF-8')
  }
}

/**
 * JSON on one line.
 *
 * @param body - the body of the error
 * @throws `InvalidDeliveryError` if JSON cannot hold the value: a bigint, a circular object, thousands of levels
 */
export function jsonOf(value: unknown, body = value): string {
  try {
    const text = JSON.stringify(value)
    if (text === undefined) throw new TypeError('JSON has no such value')
    return text
  } catch (error) {
    throw invalidDelivery(body, `cannot be written as JSON (${messageOf(error)})`, error)
  }
}

/**
 * The error for a body that is no delivery. Its message is short for every body.
 *
 * @param problem - the issues, or the rest of a sentence that begins with "the body"
 */
export function invalidDelivery(
  body: unknown,
  problem: string | readonly Issue[],
  cause?: unknown,
): InvalidDeliveryError {
  const issues = typeof problem === 'string' ? [{ path: [], message: `the body ${problem}` }] : problem
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}

/** The error for a body that throws when it is read: a stream, or an object whose getters throw. */
export function unreadableBody(body: unknown, thrown: unknown): InvalidDeliveryError {
  return invalidDelivery(body, `cannot be read (${messageOf(thrown)})`, thrown)
}

/** The error for a body whose reading threw: this package's own error, or anything else, even a proxy that throws. */
export function errorOf(body: unknown, thrown: unknown): InvalidDeliveryError {
  try {
    if (thrown instanceof InvalidDeliveryError) return thrown
  } catch {
    // Then it is no error of this package.
  }
  return unreadableBody(body, thrown)
}
