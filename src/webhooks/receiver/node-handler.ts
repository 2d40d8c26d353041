/** A callback route for servers of Node.js. */
import type { PayloadSchemas } from '../delivery/delivery.js'
import { decoded } from './content-encoding.js'
import type { CallbackAnswer, DeliveryCore } from './delivery-core.js'
import { coreOf, type DeliveryReceiver } from './delivery-receiver.js'
import { bodyLeftIn, readNodeStream } from './node-body.js'
import type { NodeRequest, NodeResponse } from './node-messages.js'
import { RequestHeaders } from './request-headers.js'

/**
 * Makes a request listener for `node:http`, `node:https` and `node:http2`, which is also a middleware for
 * Express 4 and 5, Connect and NestJS. It answers every request and never calls `next`.
 *
 * - Put the route before a body parser. Behind one it works, too (raw, text or JSON); but a body parser answers
 *   malformed JSON with 400, more than 100 kB with 413 and an unknown charset with 415, and each counts as a failed
 *   delivery.
 * - Method and secrets are checked before the body is read. A secret header that was sent twice is refused.
 * - The listener reads at most `maxBodyBytes`, for at most 10 seconds. A body that arrives too late or not wholly, or
 *   that a middleware read before and left nothing of, goes to `onInvalid` with what there is of it.
 * - Bodies with a `Content-Encoding` of `gzip` or `deflate` are decompressed, others go to `onInvalid`.
 *
 * @throws `ConfigurationError` for what is no receiver
 *
 * @example
 * ```ts
 * createServer(toNodeHandler(receiver)).listen(8080) // node:http
 * app.post('/notifications', toNodeHandler(receiver)) // Express: before app.use(express.json())
 * ```
 */
export function toNodeHandler<Payloads extends PayloadSchemas>(
  receiver: DeliveryReceiver<Payloads>,
): (request: NodeRequest, response: NodeResponse) => void {
  const core = coreOf(receiver)
  return (request, response) => void handleNodeRequest(core, request, response)
}

async function handleNodeRequest<Payloads extends PayloadSchemas>(
  core: DeliveryCore<Payloads>,
  request: NodeRequest,
  response: NodeResponse,
): Promise<void> {
  const { maxBodyBytes } = core
  const { rawHeaders, httpVersionMajor } = request
  // `headers` has only one of several values that were sent.
  const headers = new RequestHeaders(rawHeaders?.length ? rawHeaders : request.headers)
  const declaredBytes = Number(headers.get('content-length'))
  const isTooLarge = declaredBytes > maxBodyBytes
  // The rest of a short body may still come: the connection can be used again after it. A long body must not go on.
  let mustStop = isTooLarge || httpVersionMajor === 2 || headers.get('transfer-encoding') !== undefined

  let receipt = core.admit(request.method, headers)
  if (receipt === undefined) {
    let read = bodyLeftIn(request)
    if (read === undefined && isTooLarge) read = { kind: 'too-large' }
    if (read === undefined) {
      const streamed = await readNodeStream(
        request,
        maxBodyBytes,
        httpVersionMajor === 1 ? declaredBytes : undefined,
      )
      mustStop = streamed.kind !== 'body'
      read = await decoded(streamed, headers, maxBodyBytes)
    }
    receipt = await core.receive(read, headers)
  }
  try {
    send(receipt.answer, request, response, mustStop && !request.readableEnded)
  } catch (err) {
    core.log('error', { err, status: receipt.answer.status }, 'Callback not answered')
  }
}

/** @param mustStop - whether the sender must not go on with the body */
function send(
  { status, headers }: CallbackAnswer,
  request: NodeRequest,
  response: NodeResponse,
  mustStop: boolean,
): void {
  const isHttp2 = request.httpVersionMajor === 2
  // Taken before the answer ends: afterwards an HTTP/2 request has no stream any more.
  const stream = isHttp2 && mustStop ? request.stream : undefined
  // A middleware that ran before may have answered already, at a time limit of its own.
  if (!response.headersSent) {
    response.statusCode = status
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    if (mustStop && !isHttp2) response.setHeader('connection', 'close')
    response.end()
  }
  // HTTP/2 closes the stream alone, without an error (RFC 9113 section 8.1).
  stream?.close(0)
}
