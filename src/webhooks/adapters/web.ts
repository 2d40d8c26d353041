/** A callback route for servers that answer web-standard requests. */
import * as z from 'zod'
import { callLogged } from '../../logger.js'
import { validate } from '../../shared/validation.js'
import { coreOf } from '../core.js'
import { invalidRoute, wrongAdapter } from '../options.js'
import type { CallbackReceiver } from '../receiver.js'
import { readWebBody } from './web-body.js'

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
 * with an answer to every request.
 *
 * Method and secrets are checked before the body is read. What arrived of a late or incomplete body goes to `onInvalid`.
 *
 * @throws `ConfigurationError` for what is no receiver, or options that cannot work; the function throws one for
 * arguments of another framework
 *
 * @example
 * ```ts
 * const handler = toWebHandler(receiver)
 * export const POST = handler // Next.js
 * app.post('/notifications', (context) => handler(context.req.raw)) // Hono
 * export default { fetch: handler } // Workers: see `waitUntil`
 * ```
 */
export function toWebHandler<Rest extends unknown[] = []>(
  receiver: CallbackReceiver,
  options: WebHandlerOptions<Rest> = {},
): (request: Request, ...rest: Rest) => Promise<Response> {
  const core = coreOf(receiver)
  validate(z.strictObject({ waitUntil: z.function().optional() }), options, invalidRoute)
  const { waitUntil } = options

  async function answered(request: Request, rest: Rest): Promise<Response> {
    const { headers, method } = request
    const { answer, stillRunning } = await core.receive(method, headers, () => readWebBody(request, core))
    const message = 'waitUntil failed: handlers may be cut short'
    const call = () => stillRunning && waitUntil?.(stillRunning, ...rest)
    void callLogged(core.log, { event: 'wait-until.failed' }, message, call)
    return new Response(null, answer)
  }

  return (request, ...rest) => {
    // Thrown and not rejected, so that every framework reports it.
    if (request.method && typeof request.headers?.get !== 'function') throw wrongAdapter('it takes a Request')
    return answered(request, rest)
  }
}
