/** Reads the body of a callback from a server of Node.js or a web stream, up to a limit, and decompresses it. */
import type { InvalidDeliveryError } from '../errors.js'
import { BoundedBytes, readInto } from '../shared/bounded-bytes.js'
import { messageOf } from '../shared/text.js'
import { settlesWithin } from '../shared/time-limit.js'
import type { RequestHeaders } from './headers.js'
import { invalidDelivery, unusableBody } from './parse.js'

/** How long a body may take to arrive, in milliseconds. */
export const bodyTimeoutMs = 10_000

/** What to do if something else has read the body. */
export const routeAdvice = 'put the route before every body parser (docs/receiver.md)'

/** A body, or why it is unusable. `Body` is bytes if they were read here. */
export type BodyRead<Body = unknown> =
  | { readonly kind: 'body'; readonly body: Body }
  | { readonly kind: 'too-large' }
  | UnreadableBody

/** A body that is incomplete or cannot be decoded. */
export interface UnreadableBody {
  readonly kind: 'unreadable'
  /** Has the received part of the body. */
  readonly error: InvalidDeliveryError
}

/** @param problem - the rest of a sentence that begins with "the body" */
export function unreadableBody(problem: string, body: unknown, cause?: unknown): UnreadableBody {
  return { kind: 'unreadable', error: unusableBody(problem, body, cause) }
}

/** A body that throws when it is read: a stream, or an object whose getters throw. */
export function failedBody(thrown: unknown, body: unknown): UnreadableBody {
  return unreadableBody(`cannot be read (${messageOf(thrown)})`, body, thrown)
}

/**
 * Reads pieces up to `maxBytes`, for a limited time. Never rejects.
 *
 * @param problemOf - the explanation of a thrown error: the rest of a sentence that begins with "the body"
 */
export async function readPieces(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
  problemOf = (thrown: unknown) => `cannot be read (${messageOf(thrown)})`,
): Promise<BodyRead<Uint8Array>> {
  const collected = new BoundedBytes(maxBytes)
  const reading = readInto(collected, pieces).then(
    (isComplete): BodyRead<Uint8Array> =>
      isComplete ? { kind: 'body', body: collected.bytes } : { kind: 'too-large' },
    (thrown) => unreadableBody(problemOf(thrown), collected.bytes, thrown),
  )
  if (await settlesWithin(bodyTimeoutMs, reading)) return reading
  return unreadableBody(`did not arrive within ${bodyTimeoutMs} ms`, collected.bytes)
}

/** Reads a web stream as {@link readPieces} does, and cancels what is left of it. Throws if something else reads it. */
export async function readWebStream(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<BodyRead<Uint8Array>> {
  if (stream === null) return { kind: 'body', body: new Uint8Array() }
  const reader = stream.getReader()
  const read = await readPieces(piecesOf(reader), maxBytes)
  if (read.kind !== 'body') reader.cancel().catch(() => {})
  return read
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
 * but a proxy may. A body without an encoding, or an incomplete one, is returned unchanged.
 */
export function decoded(
  read: BodyRead<Uint8Array>,
  headers: RequestHeaders,
  maxBytes: number,
): BodyRead | Promise<BodyRead> {
  const coding = headers.get('content-encoding')?.trim().toLowerCase()
  const isCoded = coding !== undefined && coding !== '' && coding !== 'identity'
  return isCoded && read.kind === 'body' ? decode(read.body, coding, maxBytes) : read
}

/** Decodes `gzip` and `deflate`, which every runtime can. A body that cannot be decoded is kept unchanged. */
async function decode(encoded: Uint8Array, coding: string, maxBytes: number): Promise<BodyRead> {
  const format = formatOf(coding)
  if (format === undefined) {
    return unreadableBody(`is encoded with "${coding.slice(0, 50)}", not with gzip or deflate`, encoded)
  }
  try {
    // Narrows the type only: a body is never in shared memory.
    const content = new Blob([encoded as Uint8Array<ArrayBuffer>]).stream()
    const read = await readWebStream(content.pipeThrough(new DecompressionStream(format)), maxBytes)
    if (read.kind !== 'unreadable') return read
    const { issues, cause } = read.error
    return { kind: 'unreadable', error: invalidDelivery(encoded, issues, cause) }
  } catch (thrown) {
    return failedBody(thrown, encoded)
  }
}

function formatOf(coding: string): 'gzip' | 'deflate' | undefined {
  // `x-gzip` means `gzip` (RFC 9110 section 8.4.1.3).
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip'
  return coding === 'deflate' ? 'deflate' : undefined
}
