/** The body of a Node request: what a body parser left of it, or the stream. */
import { isBytes } from '../delivery/body.js'
import { type BodyRead, bodyTimeoutMs, failedBody, lateBody, unreadableBody } from './body-read.js'
import { CollectedBytes } from './collected-bytes.js'
import type { NodeRequest } from './node-messages.js'
import { isOverWithin } from './time-limit.js'

/** What something that ran before left; nothing if the stream is as it came. */
export function bodyLeftIn(request: NodeRequest): BodyRead | undefined {
  try {
    const { body } = request
    const wasRead = request.readableDidRead || request.readableEnded
    // Some body parsers leave an empty object, and the stream alone, for a content type that is not theirs.
    if (!wasRead && isEmpty(body)) return undefined
    if (body === undefined) return unreadableBody('was read before, which left nothing in req.body', body)
    return { kind: 'body', body }
  } catch (thrown) {
    // Some platforms parse when they are asked.
    return failedBody(thrown, undefined)
  }
}

function isEmpty(body: unknown): boolean {
  if (Object(body) !== body) return !body
  return (isBytes(body) ? body.byteLength : Object.keys(Object(body)).length) === 0
}

/**
 * Reads the stream up to `maxBytes`, for a limited time. Never rejects.
 *
 * @param declaredBytes The length of the body, where it is certain: HTTP/1 has no byte beyond it. Most bodies are
 * complete in the turn of their head, while the stream says so only later.
 */
export async function readNodeStream(
  request: NodeRequest,
  maxBytes: number,
  declaredBytes: number | undefined,
): Promise<BodyRead<Uint8Array>> {
  const collected = new CollectedBytes(maxBytes)
  const reading = readInto(collected, request, declaredBytes)
  const isInTime = await isOverWithin(reading, bodyTimeoutMs)
  return isInTime ? await reading : lateBody(collected.bytes)
}

/** Listeners, because a request costs an async iterator as much as the rest of its handling. The first to settle counts. */
function readInto(
  collected: CollectedBytes,
  request: NodeRequest,
  declaredBytes: number | undefined,
): Promise<BodyRead<Uint8Array>> {
  return new Promise((resolve) => {
    let isOver = false
    function finish(): void {
      isOver = true
      resolve({ kind: 'body', body: collected.bytes })
    }
    function breakOff(cause?: Error): void {
      // Every request is closed in the end.
      if (!isOver) resolve(unreadableBody('broke off with the connection', collected.bytes, cause))
    }
    request.on('data', (chunk) => {
      if (!collected.add(bytesOf(chunk, request))) resolve({ kind: 'too-large' })
      else if (collected.size === declaredBytes) finish()
    })
    // Something before may have paused the stream.
    request.resume()

    function watch(): void {
      request.on('end', finish)
      request.on('error', breakOff)
      request.on('close', breakOff)
      if (request.readableEnded) finish()
      else if (request.destroyed) breakOff()
    }
    // A body of declared length is mostly complete before this turn is over, and needs none of these listeners: without
    // them a request costs 2 of 28 µs less. A request of HTTP/1 emits no error that nobody listens to.
    if (declaredBytes === undefined) watch()
    else
      queueMicrotask(() => {
        if (!isOver) watch()
      })
  })
}

/** Streams give text if something before called `setEncoding`. */
function bytesOf(chunk: Uint8Array | string, request: NodeRequest): Uint8Array {
  // The type of the encoding is not that of Node's types, which an app that only receives callbacks may not have.
  return typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding as BufferEncoding) : chunk
}
