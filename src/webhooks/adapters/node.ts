/** A callback route for servers of Node.js. */
import { BoundedBytes } from '../../shared/bounded-bytes.js'
import { bodyTimeoutMs, invalidDelivery, isBytes, type ReadBody, routeAdvice } from '../body.js'
import { coreOf, type ReceiverCore } from '../core.js'
import { wrongAdapter } from '../options.js'
import type { CallbackReceiver } from '../receiver.js'
import type { NodeRequest, NodeResponse } from './node-types.js'

/**
 * Makes a request listener for `node:http`, `node:https` and `node:http2`, which is also a middleware for frameworks such as
 * Express. It answers every request, never calls `next`, and resolves once the answer was given. Put the route before every
 * body parser (docs/receiver.md, Where to put the route).
 *
 * Method and secrets are checked before the body is read. What arrived of a late or incomplete body goes to `onInvalid`.
 *
 * @throws `ConfigurationError` for what is no receiver; the function rejects with one for arguments of another framework
 *
 * @example
 * ```ts
 * createServer(toNodeHandler(receiver)).listen(8080) // node:http
 * app.post('/notifications', toNodeHandler(receiver)) // Express: before app.use(express.json())
 * ```
 */
export function toNodeHandler(
  receiver: CallbackReceiver,
): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  const core = coreOf(receiver)
  // `async`, because restify takes a function without `next` for a mistake.
  return async (request, response) => handleNodeRequest(core, request, response)
}

/** @param headers - as a hook of the framework may have changed them */
export async function handleNodeRequest(
  core: ReceiverCore,
  request: NodeRequest,
  response: NodeResponse,
  headers = request?.headers,
): Promise<void> {
  if (typeof response?.end !== 'function') throw wrongAdapter('it takes a request and a response of Node.js')

  core.connections.remember(request)

  async function readBody(): Promise<ReadBody> {
    let body: unknown
    try {
      body = isEmpty(request.body) ? (request.rawBody ?? request.body) : request.body
    } catch (error) {
      core.warnOfParser()
      throw error
    }
    // For other content types some body parsers set an empty object, and leave the stream unread.
    if (!request.readableDidRead && isEmpty(body)) return readNodeStream(request, core.maxBodyBytes)
    // Bytes beside an unread stream come from an adapter of a serverless platform, and not from a parser.
    if (request.readableDidRead || !isBytes(body)) core.warnOfParser()
    if (body !== undefined) return { body }
    throw invalidDelivery(body, `was read before the receiver, and nothing is left of it: ${routeAdvice}`)
  }

  const { answer } = await core.receive(request.method, headers, readBody)
  try {
    // A middleware that ran before may have answered already, at a time limit of its own.
    if (response.headersSent) return
    response.statusCode = answer.status
    for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
    // A sender with a long body must stop.
    if (!request.readableEnded && request.httpVersionMajor === 1) response.setHeader('connection', 'close')
    response.end()
  } catch (err) {
    const unanswered = { event: 'callback.unanswered', err, status: answer.status }
    core.log('error', unanswered, 'Callback not answered')
  }
}

function isEmpty(body: unknown): boolean {
  if (Object(body) !== body) return !body
  return (isBytes(body) ? body.byteLength : Object.keys(Object(body)).length) === 0
}

/** Reads the stream up to `maxBytes`, for a limited time. Not by its iterator, which takes several times as long. */
function readNodeStream(request: NodeRequest, maxBytes: number): Promise<ReadBody<Uint8Array>> {
  return new Promise((resolve) => {
    const body = new BoundedBytes(maxBytes)
    let isRead = false
    const end = (read: ReadBody<Uint8Array>) => {
      isRead = true
      clearTimeout(timer)
      resolve(read)
    }
    const onData = (chunk: Uint8Array | string) => {
      // Text if a middleware that ran before called `setEncoding('utf8')`.
      const bytes = typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk
      if (!body.add(bytes)) stop(undefined)
    }
    const stop = (read: ReadBody<Uint8Array>) => {
      end(read)
      request.off('data', onData)
      // Reads and drops the rest: a sender that only writes would not see the answer.
      request.resume()
    }
    const breakOff = (problem: string, cause?: unknown) => {
      // `close` also comes after a whole body: to make an error then would take half of a callback's time.
      if (!isRead) stop({ body: body.bytes, failure: invalidDelivery(body.bytes, problem, cause) })
    }
    const timer = setTimeout(breakOff, bodyTimeoutMs, `did not arrive within ${bodyTimeoutMs} ms`)
    request.on('data', onData)
    request.on('end', () => end({ body: body.bytes }))
    if (request.readableEnded) end({ body: body.bytes })
    request.on('error', (error) => breakOff('broke off with the connection', error))
    request.on('close', () => breakOff('broke off with the connection'))
    // Something that ran before may have paused the stream.
    request.resume()
  })
}
