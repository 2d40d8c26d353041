/** A callback route for servers of Node.js. */
import { invalidDelivery, isBytes, type ReadBody, readPieces, routeAdvice } from './body.js'
import { coreOf, type ReceiverCore } from './core.js'
import { RequestHeaders } from './headers.js'
import type { NodeRequest, NodeResponse } from './node-types.js'
import { foreignCall } from './options.js'
import type { CallbackReceiver } from './receiver.js'

/**
 * Makes a request listener for `node:http`, `node:https` and `node:http2`, which is also a middleware for
 * Express 4 and 5, Connect, restify, NestJS, Nuxt and the pages router of Next.js. It answers every request, never calls
 * `next`, and returns a promise that resolves once the answer was given.
 *
 * Put the route before a body parser: one answers malformed JSON with 400, more than 100 kB with 413 and an unknown
 * charset with 415, and each is a failed callback (docs/receiver.md, Where to put the route). Method and secrets are
 * checked before the body is read. A late, incomplete or unknown compressed body goes to `onInvalid`, with the
 * received part.
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

/** What a framework shows of a request, where that is not the request of Node.js. */
interface FrameworkRequest {
  /** The result of an earlier body parser; may throw. */
  readonly parsedBody?: () => unknown
  readonly headers?: NodeRequest['headers']
}

export async function handleNodeRequest(
  core: ReceiverCore,
  request: NodeRequest,
  response: NodeResponse,
  { parsedBody = () => bodyLeftOn(request), headers: shownHeaders = request?.headers }: FrameworkRequest = {},
): Promise<void> {
  if (typeof response?.end !== 'function') throw foreignCall('it takes a request and a response of Node.js')
  const { httpVersionMajor } = request
  const stream = httpVersionMajor === 2 ? request.stream : undefined
  const session = stream?.session
  // For `close`: a server of `node:http2` does not know its connections.
  if (session && !core.sessions.has(session)) {
    core.sessions.add(session)
    session.on('close', () => core.sessions.delete(session))
  }
  const headers = new RequestHeaders(shownHeaders, request.rawHeaders)
  const declaredBytes = Number(headers.get('content-length'))
  const isTooLarge = declaredBytes > core.maxBodyBytes
  // A short body may still arrive, and the connection is used again. A sender with a long body must stop.
  let mustStop = isTooLarge || httpVersionMajor === 2 || headers.get('transfer-encoding') !== undefined

  async function readBody(): Promise<ReadBody> {
    let body: unknown
    try {
      body = parsedBody()
    } catch (error) {
      core.warnOfParser()
      throw error
    }
    // For other content types some body parsers set an empty object, and leave the stream unread.
    if (request.readableDidRead || !isEmpty(body)) {
      // Adapters of serverless platforms put the bytes there, and no parser has answered anything.
      if (request.readableDidRead || !isBytes(body)) core.warnOfParser()
      if (body !== undefined) return { body }
      throw invalidDelivery(body, `was read before the receiver, and nothing is left of it: ${routeAdvice}`)
    }
    if (isTooLarge) return undefined
    mustStop = true
    // HTTP/1 has no byte beyond the declared ones.
    const certainBytes = httpVersionMajor === 1 ? declaredBytes : undefined
    const read = await readNodeStream(request, core.maxBodyBytes, certainBytes)
    mustStop = read === undefined || read.failure !== undefined
    return read
  }

  const { answer } = await core.receive(request.method, headers, readBody)
  mustStop &&= !request.readableEnded
  try {
    // A middleware that ran before may have answered already, at a time limit of its own.
    if (!response.headersSent) {
      response.statusCode = answer.status
      for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
      if (mustStop && !stream) response.setHeader('connection', 'close')
      response.end()
    }
    // HTTP/2 closes the stream alone, without an error (RFC 9113 section 8.1). Node.js 26 drops an answer that is not sent yet.
    if (mustStop && stream) setImmediate(() => stream.close(0))
  } catch (err) {
    const unanswered = { event: 'callback.unanswered', err, status: answer.status }
    core.log('error', unanswered, 'Callback not answered')
  }
}

/** What earlier code has left of a body: some middleware, and some platforms, keep it in `rawBody`. May throw. */
export function bodyLeftOn({ body, rawBody }: Pick<NodeRequest, 'body' | 'rawBody'>): unknown {
  return isEmpty(body) ? (rawBody ?? body) : body
}

function isEmpty(body: unknown): boolean {
  if (Object(body) !== body) return !body
  return (isBytes(body) ? body.byteLength : Object.keys(Object(body)).length) === 0
}

/** Reads the stream up to `maxBytes`, for a limited time. @param certainBytes - the length of the body, if it is certain */
async function readNodeStream(
  request: NodeRequest,
  maxBytes: number,
  certainBytes: number | undefined,
): Promise<ReadBody<Uint8Array>> {
  let first: Uint8Array = nothing
  // Usually the body arrives with its head. An iterator would take half as long as all the rest of a callback.
  if (certainBytes !== undefined) {
    // Paused, so that no chunk goes to another listener before it is read here.
    request.pause?.()
    // Read now: Node.js drops an unread body as soon as anything answers the request.
    first = bytesOf(request.read?.(), request)
    if (first === nothing) {
      await undefined
      first = bytesOf(request.read?.(), request)
    }
    if (first.byteLength === certainBytes) return { body: first }
  }
  try {
    const problem = () => 'broke off with the connection'
    return await readPieces(piecesOf(request, first), maxBytes, problem)
  } finally {
    // Reads and drops the rest: a sender that only writes would not see the answer.
    request.resume()
  }
}

const nothing = new Uint8Array()

async function* piecesOf(request: NodeRequest, first: Uint8Array): AsyncGenerator<Uint8Array> {
  yield first
  // Otherwise the request would be destroyed when the body is too large, and could not be answered.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) yield bytesOf(chunk, request)
}

/** The bytes of a chunk, which is text if a middleware that ran before called `setEncoding`. */
function bytesOf(chunk: Uint8Array | string | null | undefined, request: NodeRequest): Uint8Array {
  if (typeof chunk !== 'string') return chunk ?? nothing
  // The type of the encoding is not that of Node's types, which an app that only receives callbacks may not have.
  return Buffer.from(chunk, request.readableEncoding as BufferEncoding)
}
