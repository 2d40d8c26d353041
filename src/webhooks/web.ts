/** A callback route for servers that answer web-standard requests. */
import * as z from 'zod'
import { callSafely } from '../shared/calls.js'
import { type BodyRead, decoded, failedBody, readWebStream, routeAdvice, unreadableBody } from './body.js'
import { RequestHeaders } from './headers.js'
import { validateRouteOptions } from './options.js'
import { type AdapterCore, coreOf, type DeliveryReceiver } from './receiver.js'
import type { PayloadSchemas } from './schemas.js'

/** Options of {@link toWebHandler}. */
export interface WebHandlerOptions<Rest extends unknown[]> {
  /**
   * Keeps the platform from stopping handlers that still run after the answer (`ackTimeoutMs`). Gets their promise, then the
   * other arguments of the route. Default: none; platforms that end with the answer may stop such handlers.
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
 * Makes a function from `Request` to `Response`: for Hono, Next.js, Deno, Bun, Cloudflare Workers. The function resolves
 * with an answer to every request, and never rejects.
 *
 * - Method and secrets are checked before the body is read. `Headers` joins a header that was sent twice to one
 *   text, which is compared as a whole.
 * - The function reads at most `maxBodyBytes`, for at most 10 seconds. A late or incomplete body, or one that was
 *   read before, goes to `onInvalid` with the received part.
 * - Bodies with a `Content-Encoding` of `gzip` or `deflate` are decompressed, others go to `onInvalid`.
 *
 * @throws `ConfigurationError` for what is no receiver, or options that cannot work
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
  options: WebHandlerOptions<Rest> = {},
): (request: Request, ...rest: Rest) => Promise<Response> {
  const core = coreOf(receiver)
  validateRouteOptions({ waitUntil: z.function().optional() }, options)
  const { waitUntil } = options
  return async (request, ...rest) => {
    const headers = new RequestHeaders(request.headers)
    const { answer, stillRunning } = await core.receive(request.method, headers, () =>
      readWebRequest(request, headers, core),
    )
    if (stillRunning !== undefined) {
      void callSafely(
        () => waitUntil?.(stillRunning, ...rest),
        (err) =>
          core.log(
            'error',
            { event: 'wait-until.failed', err },
            'waitUntil failed: handlers may be cut short',
          ),
      )
    }
    return new Response(null, answer)
  }
}

async function readWebRequest(
  request: Request,
  headers: RequestHeaders,
  core: AdapterCore,
): Promise<BodyRead> {
  try {
    if (request.bodyUsed) {
      core.warnOfParser()
      return unreadableBody(`was read before the receiver: ${routeAdvice}`, undefined)
    }
    const { maxBodyBytes } = core
    return await decoded(await readWebStream(request.body, maxBodyBytes), headers, maxBodyBytes)
  } catch (thrown) {
    return failedBody(thrown, undefined)
  }
}
