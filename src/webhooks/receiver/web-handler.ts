/** A callback route for servers that answer web-standard requests. */
import { contain } from '../../logger.js'
import { messageOf } from '../../text.js'
import type { PayloadSchemas } from '../delivery.js'
import { decode, isEncoded } from './content-encoding.js'
import { type AnswerStatus, answerHeaders } from './delivery-core.js'
import { type DeliveryReceiver, deliveryCore } from './delivery-receiver.js'
import { headerReader } from './headers.js'
import { isWhole, type ReadBody, readStream, unusable } from './read-body.js'

/** Options of {@link toWebHandler}. */
export interface WebHandlerOptions<Rest extends unknown[]> {
  /**
   * Keeps the platform from stopping handlers that still run when the answer is sent, after `ackTimeoutMs`: gets
   * their promise, and then whatever else the platform called the route with. Without it they may be cut short
   * on platforms that end with the answer.
   *
   * @example
   * ```ts
   * toWebHandler(receiver, { waitUntil }) // Vercel: import { waitUntil } from '@vercel/functions'
   * toWebHandler(receiver, {
   *   waitUntil: (promise, _env: Env, context: ExecutionContext) => context.waitUntil(promise), // Workers
   * })
   * ```
   */
  readonly waitUntil?: ((stillRunning: Promise<void>, ...rest: Rest) => unknown) | undefined
}

/**
 * Makes a function from `Request` to `Response`: for Hono, Next.js, Deno, Bun, Cloudflare Workers. It resolves
 * with an answer to every request, and never rejects.
 *
 * - Method and secrets are checked before the body is read. `Headers` joins a header that was sent twice to one
 *   text, which is compared as a whole.
 * - It reads at most `maxBodyBytes`, for at most 10 seconds. A body that arrives too late or not wholly, or that
 *   something before read, goes to `onInvalid` with what there is of it.
 * - Bodies with a `Content-Encoding` of `gzip` or `deflate` are decompressed, others go to `onInvalid`.
 *
 * @example
 * ```ts
 * const handler = toWebHandler(receiver)
 * export const POST = handler // Next.js
 * app.post('/notifications', (context) => handler(context.req.raw)) // Hono
 * export default { fetch: handler } // Workers: see `waitUntil`
 * ```
 */
export function toWebHandler<Payloads extends PayloadSchemas, Rest extends unknown[] = []>(
  receiver: DeliveryReceiver<Payloads>,
  { waitUntil }: WebHandlerOptions<Rest> = {},
): (request: Request, ...rest: Rest) => Promise<Response> {
  const core = receiver[deliveryCore]
  return async (request, ...rest) => {
    const headerOf = headerReader(request.headers)
    const refusal = core.refusalOf(request.method, headerOf)
    if (refusal !== undefined) return responseOf(refusal)

    // In flight from here on: a body that is still arriving will have handlers.
    core.inFlight.begin()
    const read = await readWebBody(request, headerOf('content-encoding'), core.maxBodyBytes)
    return new Promise((resolve) => {
      core.receiveRead(read, (status, stillRunning) => {
        contain(
          () => stillRunning && waitUntil?.(stillRunning, ...rest),
          (err) => core.logger.error({ err }, 'waitUntil failed: handlers that still run may be cut short'),
        )
        resolve(responseOf(status))
      })
      core.inFlight.end()
    })
  }
}

async function readWebBody(
  request: Request,
  contentEncoding: string | undefined,
  maxBytes: number,
): Promise<ReadBody> {
  const nothing = new Uint8Array()
  try {
    if (request.bodyUsed) return unusable('the body was read by something before', nothing)
    if (request.body === null) return { bytes: nothing }
    const read = await readStream(request.body, maxBytes)
    return isWhole(read) && isEncoded(contentEncoding) ? decode(read.bytes, contentEncoding, maxBytes) : read
  } catch (cause) {
    // A request of another make, whose getters throw.
    return unusable(`the body cannot be read (${messageOf(cause)})`, nothing, cause)
  }
}

function responseOf(status: AnswerStatus): Response {
  return new Response(null, { status, headers: answerHeaders(status) })
}
