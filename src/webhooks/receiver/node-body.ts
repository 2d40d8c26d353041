/** The body of a Node request: what a body parser left of it, or the stream. */
import { isBytes } from '../delivery/body.js'
import { type BodyRead, bodyTimeoutMs, failedBody, lateBody, unreadableBody } from './body-read.js'
import { CollectedBytes } from './collected-bytes.js'
import type { NodeRequest } from './node-messages.js'

/** The body that something else has read before; nothing if the stream is as it came. */
export function bodyLeftIn(request: NodeRequest): BodyRead | undefined {
  try {
    const { body } = request
    const wasRead = request.readableDidRead || request.readableEnded
    // Some body parsers leave an empty object, and the stream alone, for a content type that is not theirs.
    if (!wasRead && isEmpty(body)) return undefined
    if (body === undefined) return unreadableBody('was read before, which left nothing in req.body', body)
    return { kind: 'body', body }
  } catch (thrown) {
    // On some platforms `request.body` is a getter that parses, and throws.
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
 * @param declaredBytes - the length of the body, where it is certain: HTTP/1 has no byte beyond it
 */
export async function readNodeStream(
  request: NodeRequest,
  maxBytes: number,
  declaredBytes: number | undefined,
): Promise<BodyRead<Uint8Array>> {
  const collected = new CollectedBytes(maxBytes)
  if (declaredBytes !== undefined) {
    // Until the body is taken nothing may flow, also if something else listens to the request.
    request.pause?.()
    // Node drops a body that nobody has begun to read when an answer is sent, also by something else: so begin now.
    takeWhatIsThere(request, collected)
    // Mostly such a body arrives with its head: then all of it is there in the next turn.
    await undefined
    takeWhatIsThere(request, collected)
    if (collected.size === declaredBytes) return { kind: 'body', body: collected.bytes }
  }
  return readRest(request, collected, declaredBytes)
}

function takeWhatIsThere(request: NodeRequest, collected: CollectedBytes): void {
  const chunk = request.read?.() ?? ''
  if (chunk.length > 0) collected.add(bytesOf(chunk, request))
}

/** Reads on by listeners: an async iterator would destroy the request when it ends early. */
function readRest(
  request: NodeRequest,
  collected: CollectedBytes,
  declaredBytes: number | undefined,
): Promise<BodyRead<Uint8Array>> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish(lateBody(collected.bytes)), bodyTimeoutMs)

    /** Settles the promise: only the first call counts. */
    function finish(read: BodyRead<Uint8Array>): void {
      clearTimeout(timer)
      resolve(read)
    }
    function finishWhole(): void {
      finish({ kind: 'body', body: collected.bytes })
    }
    function breakOff(cause?: Error): void {
      finish(unreadableBody('broke off with the connection', collected.bytes, cause))
    }

    request.on('data', (chunk) => {
      if (!collected.add(bytesOf(chunk, request))) finish({ kind: 'too-large' })
      else if (collected.size === declaredBytes) finishWhole()
    })
    request.on('end', finishWhole)
    request.on('error', breakOff)
    // Every request emits `close` in the end, also one whose body is complete.
    request.on('close', breakOff)
    // A middleware that ran before may have paused the stream.
    request.resume()
    if (request.readableEnded) finishWhole()
    else if (request.destroyed) breakOff()
  })
}

/** The bytes of a chunk, which is text if a middleware that ran before called `setEncoding`. */
function bytesOf(chunk: Uint8Array | string, request: NodeRequest): Uint8Array {
  // The type of the encoding is not that of Node's types, which an app that only receives callbacks may not have.
  return typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding as BufferEncoding) : chunk
}
