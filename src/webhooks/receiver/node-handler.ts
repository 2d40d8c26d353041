/** A callback route for servers of Node.js. */
import type { SafeLogger } from '../../logger.js'
import type { PayloadSchemas } from '../delivery.js'
import { decode } from './content-encoding.js'
import { type AnswerStatus, answerHeaders } from './delivery-core.js'
import { type DeliveryReceiver, deliveryCore } from './delivery-receiver.js'
import { headerReader, rawHeaderReader } from './headers.js'
import { bodyFoundIn, readNodeBody } from './node-body.js'
import type { NodeRequest, NodeResponse } from './node-messages.js'

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
    const declaredBytes = Number(headerOf('content-length') ?? 0)
    // Of a body that is not read to its end: the sender must not go on.
    let mustStop = false
    const answer = (status: AnswerStatus) => respond(core.logger, request, response, status, mustStop)

    const refusal = core.refusalOf(request.method, headerOf)
    if (refusal !== undefined) {
      const isLong = declaredBytes > maxBodyBytes || headerOf('transfer-encoding') !== undefined
      mustStop = isLong || (request.httpVersionMajor === 2 && !request.readableEnded)
      return answer(refusal)
    }

    const found = bodyFoundIn(request)
    if (found) return core.receive(found, answer)
    mustStop = declaredBytes > maxBodyBytes
    if (mustStop) return answer(core.refuse(413))
    const certainBytes = request.httpVersionMajor === 1 ? declaredBytes : undefined
    // In flight from here on: a body that is still arriving will have handlers.
    core.inFlight.begin()
    readNodeBody(request, maxBodyBytes, certainBytes, (read) =>
      decode(read, headerOf('content-encoding'), maxBodyBytes, (decoded) => {
        mustStop = decoded.failure !== undefined
        core.receive(decoded, answer)
        core.inFlight.end()
      }),
    )
  }
}

function respond(
  logger: SafeLogger,
  request: NodeRequest,
  response: NodeResponse,
  status: AnswerStatus,
  mustStop: boolean,
): void {
  try {
    const stream = mustStop && request.httpVersionMajor === 2 ? request.stream : undefined
    // Something before may have answered: a middleware with a time limit of its own.
    if (!response.headersSent) {
      response.statusCode = status
      const headers = answerHeaders(status)
      for (const name in headers) response.setHeader(name, `${headers[name]}`)
      if (mustStop && !stream) response.setHeader('connection', 'close')
      response.end()
    }
    // HTTP/2 closes the stream alone, without an error (RFC 9113 section 8.1).
    stream?.close(0)
  } catch (err) {
    logger.error({ err, status }, 'Callback could not be answered')
  }
}
