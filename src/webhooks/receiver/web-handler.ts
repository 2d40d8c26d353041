/** A callback route for servers that answer web-standard requests. */
import { callSafely } from '../../shared/call-safely.js'
import type { PayloadSchemas } from '../delivery/delivery.js'
import { bodyFailure } from '../delivery/failure.js'
import { readBefore } from './body-reader.js'
import { decode } from './content-encoding.js'
import { type DeliveryReceiver, deliveryCore } from './delivery-receiver.js'
import { headerReader } from './headers.js'
import { readWebBody } from './web-body.js'

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
  const { maxBodyBytes, log, handle } = receiver[deliveryCore]
  return (request, ...rest) =>
    new Promise((resolve) => {
      const headerOf = headerReader(request.headers)
      const bodyOf = () => {
        if (request.bodyUsed) throw bodyFailure(readBefore)
        return request.body
      }
      handle(
        request.method,
        headerOf,
        (onBody) => {
          void readWebBody(bodyOf, maxBodyBytes, (read) => decode(read, headerOf, maxBodyBytes, onBody))
        },
        (answer, stillRunning) => {
          callSafely(
            () => stillRunning && waitUntil?.(stillRunning, ...rest),
            (err) => log('error', { err }, 'waitUntil failed: handlers may be cut short'),
          )
          resolve(new Response(null, answer))
        },
      )
    })
}
