/** The body of a Node request: what a body parser left of it, or the stream. */
import { isBytes } from '../delivery/body.js'
import { bodyFailure, thrownFailure } from '../delivery/failure.js'
import { bodyReader, type OnBytes, type ReceivedBody, readBefore } from './body-reader.js'
import type { NodeRequest } from './node-messages.js'

/** What something that ran before left; nothing if the stream is as it came. */
export const bodyFoundIn = (request: NodeRequest): ReceivedBody | undefined => {
  try {
    const { body } = request
    const wasRead = request.readableDidRead || request.readableEnded
    // Some body parsers leave an empty object, and the stream alone, for a content type that is not theirs.
    if (!wasRead && isEmpty(body)) return undefined
    return body === undefined
      ? { failure: bodyFailure(`${readBefore}, which left nothing in req.body`) }
      : { body }
  } catch (thrown) {
    // Some platforms parse when they are asked.
    return { failure: thrownFailure(thrown) }
  }
}

const isEmpty = (body: unknown): boolean =>
  Object(body) === body ? (isBytes(body) ? body.byteLength : Object.keys(Object(body)).length) === 0 : !body

/**
 * Reads the stream up to `maxBytes` and calls `done` once: when the body is over, is too large, or will not
 * come. Listeners, because a request costs an async iterator as much as the rest of its handling.
 *
 * @param declaredBytes - the length of the body, where it is certain: HTTP/1 has no byte beyond it
 */
export const readNodeBody = (
  request: NodeRequest,
  maxBytes: number,
  declaredBytes: number | undefined,
  done: OnBytes,
): void => {
  const breakOff = (cause?: Error) => body.finish(bodyFailure('broke off with the connection', cause))
  const watch = () => {
    request.on('end', () => body.finish())
    // Stays for good: an error without a listener would end the process.
    request.on('error', breakOff)
  }
  // Most bodies come with their headers and are over then: those need no watch on the connection.
  const onWait = () => {
    if (request.readableEnded) return body.finish()
    if (request.destroyed) return breakOff()
    if (declaredBytes) watch()
    request.on('close', breakOff)
  }
  const body = bodyReader(maxBytes, done, declaredBytes, onWait)
  request.on('data', (chunk) => {
    // Streams give text if something before called setEncoding. Its type comes from here and not from Node's types,
    // which an app that only receives callbacks may not have.
    body.add(
      typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding as BufferEncoding) : chunk,
    )
  })
  // A listener costs as much as checking the secrets. A request of HTTP/1 emits no error that nobody listens to.
  if (!declaredBytes) watch()
  // Something before may have paused the stream.
  request.resume()
}
