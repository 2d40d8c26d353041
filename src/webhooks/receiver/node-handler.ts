/** A callback route for servers of Node.js. */
import type { PayloadSchemas } from '../delivery/delivery.js'
import { type ReceivedBody, tooLarge } from './body-reader.js'
import { decode } from './content-encoding.js'
import type { CallbackAnswer } from './delivery-core.js'
import { type DeliveryReceiver, deliveryCore } from './delivery-receiver.js'
import { headerReader } from './headers.js'
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
  const { maxBodyBytes, log, handle } = receiver[deliveryCore]
  return (request, response) => {
    const headerOf = headerReader(request.rawHeaders?.length ? request.rawHeaders : request.headers)
    const version = request.httpVersionMajor
    const declaredBytes = Number(headerOf('content-length'))
    const isLong = declaredBytes > maxBodyBytes
    /** Whether the sender must not go on. Known once the stream was read here. */
    let mustStop: boolean | undefined

    const read = (onBody: (received: ReceivedBody) => void) => {
      const found = bodyFoundIn(request) ?? (isLong ? { failure: tooLarge } : undefined)
      if (found) return onBody(found)
      readNodeBody(request, maxBodyBytes, version === 1 ? declaredBytes : undefined, (bytes) =>
        decode(bytes, headerOf, maxBodyBytes, (received) => {
          mustStop = received.failure !== undefined
          onBody(received)
        }),
      )
    }
    const answer = ({ status, headers }: CallbackAnswer) => {
      try {
        // Read by others or by nobody. The rest of a short body may still come: that does not cost the connection.
        mustStop ??=
          !request.readableEnded && (isLong || version === 2 || headerOf('transfer-encoding') !== undefined)
        const stream = mustStop && version === 2 ? request.stream : undefined
        // Something before may have answered: a middleware with a time limit of its own.
        if (!response.headersSent) {
          response.statusCode = status
          for (const name in headers) response.setHeader(name, `${headers[name]}`)
          if (mustStop && version !== 2) response.setHeader('connection', 'close')
          response.end()
        }
        // HTTP/2 closes the stream alone, without an error (RFC 9113 section 8.1).
        stream?.close(0)
      } catch (err) {
        log('error', { err, status }, 'Callback not answered')
      }
    }
    handle(request.method, headerOf, read, answer)
  }
}
