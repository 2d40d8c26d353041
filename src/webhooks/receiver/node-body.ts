/** The body of a Node request: what a body parser left of it, or the stream. */

import { messageOf } from '../../text.js'
import { isBytes } from '../body.js'
import { type Failure, failure } from '../failure.js'
import type { NodeRequest } from './node-messages.js'
import { arrivedTooLate, bodyTimeoutMs, Pieces, type ReadBody, unusable } from './read-body.js'

/** What something that ran before left: a body, the stream as it came, or neither. */
export type FoundBody =
  | { readonly isUnread: true; readonly failure?: undefined }
  | { readonly isUnread: false; readonly body: unknown; readonly failure?: undefined }
  | { readonly failure: Failure }

export function bodyFoundIn(request: NodeRequest): FoundBody {
  try {
    const { body } = request
    const wasRead = request.readableDidRead || request.readableEnded
    // Some body parsers leave an empty object, and the stream alone, for a content type that is not theirs.
    if (!wasRead && isEmpty(body)) return { isUnread: true }
    if (body !== undefined) return { isUnread: false, body }
    return { failure: failure('the body was read by something before, which left nothing in req.body') }
  } catch (cause) {
    // Some platforms parse when they are asked.
    return { failure: failure(`req.body cannot be read (${messageOf(cause)})`, cause) }
  }
}

function isEmpty(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return !body
  return isBytes(body) ? body.byteLength === 0 : Object.keys(body).length === 0
}

/**
 * Reads the stream up to `maxBytes` and calls `done` once: when the body is over, is too large, or will not
 * come. Listeners, because a request costs an async iterator as much as the rest of its handling.
 *
 * @param declaredBytes - the length of the body, where it is certain: HTTP/1 has no byte beyond it
 */
export function readNodeBody(
  request: NodeRequest,
  maxBytes: number,
  declaredBytes: number | undefined,
  done: (read: ReadBody) => void,
): void {
  const pieces = new Pieces(maxBytes)
  let isDone = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const finish = (read: ReadBody) => {
    isDone = true
    clearTimeout(timer)
    done(read)
  }
  const breakOff = (cause?: Error) => {
    if (!isDone) finish(unusable('the connection ended before the body did', pieces.joined(), cause))
  }
  const end = () => {
    if (!isDone) finish({ bytes: pieces.joined() })
  }

  request.on('data', (chunk: Uint8Array | string) => {
    if (isDone) return
    const piece = typeof chunk === 'string' ? bytesOf(chunk, request.readableEncoding) : chunk
    if (!pieces.add(piece)) finish('too large')
    else if (pieces.size === declaredBytes) end()
  })
  const watch = () => {
    request.on('end', end)
    // Stays for good: an error without a listener would end the process.
    request.on('error', breakOff)
  }
  // A listener costs as much as checking the secrets. A request of HTTP/1 emits no error that nobody listens to.
  if (!declaredBytes) watch()
  // Something before may have paused the stream.
  request.resume()
  // Most bodies come with their headers and are over then: those need no timer, and no watch on the connection.
  void soon.then(() => {
    if (isDone) return
    if (request.readableEnded) return end()
    if (request.destroyed) return breakOff()
    if (declaredBytes) watch()
    timer = setTimeout(() => finish(arrivedTooLate(pieces.joined())), bodyTimeoutMs)
    request.on('close', breakOff)
  })
}

/** Streams give text if something before called setEncoding. */
function bytesOf(text: string, encoding: NodeRequest['readableEncoding']): Uint8Array {
  // Declared without Node's types, which an app that only receives callbacks may not have.
  return Buffer.from(text, (encoding ?? 'utf8') as BufferEncoding)
}

const soon = Promise.resolve()
