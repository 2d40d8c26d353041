/** Reads the body of a callback from web streams, and decompresses it. Streams of Node.js: see node.ts. */
import type { Issue } from '../errors.js'
import { BoundedBytes } from '../shared/bounded-bytes.js'
import { messageOf } from '../shared/text.js'
import { settlesWithin } from '../shared/time-limit.js'
import type { RequestHeaders } from './headers.js'

/** How long a body may take to arrive, in milliseconds, so that a sender that stops half way is given up. */
export const bodyTimeoutMs = 10_000

/** What to do if something else has read the body. */
export const routeAdvice = 'put the route before every body parser (docs/receiver.md)'

/** A body, or why there is none to use. `Body` is bytes where they were read here. */
export type BodyRead<Body = unknown> =
  | { readonly kind: 'body'; readonly body: Body }
  | { readonly kind: 'too-large' }
  | UnreadableBody

/** A body that did not arrive wholly, or cannot be decoded. */
export interface UnreadableBody {
  readonly kind: 'unreadable'
  readonly issues: readonly Issue[]
  /** What was thrown, if something was. */
  readonly cause: unknown
  /** What there is of the body. */
  readonly body: unknown
}

/** @param problem - the rest of a sentence that begins with "the body" */
export function unreadableBody(problem: string, body: unknown, cause?: unknown): UnreadableBody {
  return { kind: 'unreadable', issues: [{ path: [], message: `the body ${problem}` }], cause, body }
}

/** A body that took longer than {@link bodyTimeoutMs}. */
export function lateBody(body: unknown): UnreadableBody {
  return unreadableBody(`did not arrive within ${bodyTimeoutMs} ms`, body)
}

/** A body that threw when it was read: a stream, or an object whose getters throw. */
export function failedBody(thrown: unknown, body: unknown): UnreadableBody {
  return unreadableBody(`cannot be read (${messageOf(thrown)})`, body, thrown)
}

type Bytes = NonNullable<Parameters<InstanceType<typeof TextDecoder>['decode']>[0]>

/** An `ArrayBuffer` or any view on one. By tag and not by instanceof: other realms (a worker's vm, Jest) have their own. */
export function isBytes(body: unknown): body is Bytes {
  return ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
}

/** Limits a body that something else has read, such as a body parser. */
export function withinLimit(read: BodyRead, maxBytes: number): BodyRead {
  if (read.kind !== 'body') return read
  try {
    return isLarger(read.body, maxBytes) ? { kind: 'too-large' } : read
  } catch (thrown) {
    // The body is a `Proxy` that throws even when its kind is asked for.
    return failedBody(thrown, read.body)
  }
}

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
function isLarger(body: unknown, maxBytes: number): boolean {
  if (typeof body !== 'string') return isBytes(body) && body.byteLength > maxBytes
  // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
  return body.length > maxBytes || (body.length * 3 > maxBytes && new Blob([body]).size > maxBytes)
}

/**
 * Reads a stream up to `maxBytes`, for a limited time, and cancels the stream beyond either limit.
 *
 * @throws if something else is reading the stream
 */
export async function readWebStream(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<BodyRead<Uint8Array>> {
  const collected = new BoundedBytes(maxBytes)
  if (stream === null) return { kind: 'body', body: collected.bytes }
  const reader = stream.getReader()
  const reading = readInto(collected, reader)
  const isInTime = await settlesWithin(bodyTimeoutMs, reading)
  const read = isInTime ? await reading : lateBody(collected.bytes)
  if (read.kind !== 'body') reader.cancel().catch(() => {})
  return read
}

/** Never rejects. */
async function readInto(
  collected: BoundedBytes,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<BodyRead<Uint8Array>> {
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { kind: 'body', body: collected.bytes }
      if (!ArrayBuffer.isView(value)) return unreadableBody('is no stream of bytes', collected.bytes)
      // Any view on bytes will do, whatever its elements are.
      const fits = collected.add(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
      if (!fits) return { kind: 'too-large' }
    }
  } catch (thrown) {
    return failedBody(thrown, collected.bytes)
  }
}

/**
 * Undoes the coding that the header `content-encoding` names, up to `maxBytes` of content: the service compresses
 * nothing (docs/service.md, Delivery), but a proxy before the app may. A body without a coding, and what did not arrive
 * wholly, is returned as it is.
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

/** Undoes `gzip` and `deflate`, which every runtime can undo. A body that cannot be decoded is kept as it came. */
async function decode(encoded: Uint8Array, coding: string, maxBytes: number): Promise<BodyRead> {
  const format = formatOf(coding)
  if (format === undefined) {
    return unreadableBody(`is encoded with "${coding.slice(0, 50)}", not with gzip or deflate`, encoded)
  }
  try {
    // Narrows the type only: a body is never in shared memory.
    const content = new Blob([encoded as Uint8Array<ArrayBuffer>]).stream()
    const read = await readWebStream(content.pipeThrough(new DecompressionStream(format)), maxBytes)
    return read.kind === 'unreadable' ? { ...read, body: encoded } : read
  } catch (thrown) {
    return failedBody(thrown, encoded)
  }
}

function formatOf(coding: string): 'gzip' | 'deflate' | undefined {
  // `x-gzip` means `gzip` (RFC 9110 section 8.4.1.3).
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip'
  return coding === 'deflate' ? 'deflate' : undefined
}
