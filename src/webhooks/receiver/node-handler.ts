/** A callback route for servers of Node.js. */
import type { SafeLogger } from '../../logger.js'
import type { PayloadSchemas } from '../delivery.js'
import { decode, isEncoded } from './content-encoding.js'
import { type AnswerStatus, answerHeaders } from './delivery-core.js'
import { type DeliveryReceiver, deliveryCore } from './delivery-receiver.js'
import { headerReader, rawHeaderReader } from './headers.js'
import { bodyFoundIn, readNodeBody } from './node-body.js'
import type { NodeRequest, NodeResponse } from './node-messages.js'
import { isWhole, type ReadBody } from './read-body.js'

/**
 * Makes a request listener for `node:http`, `node:https` and `node:http2`, which is also a middleware for
 * Express 4 and 5, Connect and NestJS. It answers every request and never calls `next`.
 *
 * - It works with and without a body parser before it (raw, text or JSON). A body parser may answer malformed
 *   JSON itself, with an error that counts as a failed delivery: better put the route before the parser.
 * - Method and secrets are checked before the body is read. A secret header that was sent twice is refused.
 * - It reads at most `maxBodyBytes`, for at most 10 seconds. A body that arrives too late or not wholly, or that
 *   something before read and left nothing of, goes to `onInvalid` with what there is of it.
 * - Bodies with a `Content-Encoding` of `gzip` or `deflate` are decompressed, others go to `onInvalid`.
 *
 * @example
 * ```ts
 * createServer(toNodeHandler(receiver)).listen(8080) // node:http
 * app.post('/notifications', toNodeHandler(receiver)) // Express
 * ```
 */
export function toNodeHandler<Payloads extends PayloadSchemas>(
  receiver: DeliveryReceiver<Payloads>,
): (request: NodeRequest, response: NodeResponse) => void {
  const core = receiver[deliveryCore]
  const { maxBodyBytes } = core
  return (request, response) => {
    const headerOf = request.rawHeaders?.length
      ? rawHeaderReader(request.rawHeaders)
      : headerReader(request.headers)
    const answer = (status: AnswerStatus) => respond(core.logger, response, status)
    // For when not all of the body was read: the sender must not go on.
    const answerAndClose = (status: AnswerStatus) => {
      if (request.httpVersionMajor !== 2) {
        respond(core.logger, response, status, true)
        return
      }
      // HTTP/2 closes the stream alone, without an error (RFC 9113 section 8.1).
      const { stream } = request
      respond(core.logger, response, status)
      stream?.close(0)
    }
    const declaredBytes = Number(headerOf('content-length') ?? 0)

    const refusal = core.refusalOf(request.method, headerOf)
    if (refusal !== undefined) {
      const isLong = declaredBytes > maxBodyBytes || headerOf('transfer-encoding') !== undefined
      const isOpen = isLong || (request.httpVersionMajor === 2 && !request.readableEnded)
      return isOpen ? answerAndClose(refusal) : answer(refusal)
    }

    const found = bodyFoundIn(request)
    if (found.failure) return core.receiveUnusable(found.failure, undefined, answer)
    if (!found.isUnread) return core.receive(found.body, answer)
    if (declaredBytes > maxBodyBytes) return answerAndClose(core.refuse(413))
    const certainBytes = request.httpVersionMajor === 1 ? declaredBytes : undefined
    const receive = (read: ReadBody) => {
      core.receiveRead(read, isWhole(read) ? answer : answerAndClose)
      core.inFlight.end()
    }
    // In flight from here on: a body that is still arriving will have handlers.
    core.inFlight.begin()
    readNodeBody(request, maxBodyBytes, certainBytes, (read) => {
      const contentEncoding = headerOf('content-encoding')
      if (!isWhole(read) || !isEncoded(contentEncoding)) receive(read)
      else void decode(read.bytes, contentEncoding, maxBodyBytes).then(receive)
    })
  }
}

function respond(logger: SafeLogger, response: NodeResponse, status: AnswerStatus, closes = false): void {
  try {
    // Something before may have answered: a middleware with a time limit of its own.
    if (response.headersSent) return
    response.statusCode = status
    const headers = answerHeaders(status)
    for (const name in headers) response.setHeader(name, `${headers[name]}`)
    if (closes) response.setHeader('connection', 'close')
    response.end()
  } catch (err) {
    logger.error({ err, status }, 'Callback could not be answered')
  }
}
