/** A callback route for Koa. */
import { coreOf } from './core.js'
import { bodyLeftOn, handleNodeRequest } from './node.js'
import type { NodeRequest, NodeResponse } from './node-types.js'
import type { CallbackReceiver } from './receiver.js'

/** The parts of the context of Koa that the middleware uses. */
export interface KoaContextLike {
  /** The request of Node.js. */
  readonly req: NodeRequest
  /** The response of Node.js. */
  readonly res: NodeResponse
  /** The request of Koa. */
  readonly request: Pick<NodeRequest, 'method' | 'body' | 'rawBody'>
  /** Whether Koa answers itself. */
  respond?: boolean | undefined
}

/**
 * Makes a middleware for Koa, which answers every request as {@link toNodeHandler} does, and never calls `next`. Put it
 * before a body parser, on the path of the callbacks.
 *
 * @throws `ConfigurationError` for what is no receiver
 *
 * @example
 * ```ts
 * const handleCallback = toKoaMiddleware(receiver)
 * app.use((context, next) => (context.path === '/notifications' ? handleCallback(context) : next())) // first
 * ```
 */
export function toKoaMiddleware(receiver: CallbackReceiver): (context: KoaContextLike) => Promise<void> {
  const core = coreOf(receiver)
  return (context) => {
    context.respond = false
    return handleNodeRequest(core, context.req, context.res, {
      parsedBody: () => bodyLeftOn(context.request) ?? bodyLeftOn(context.req),
    })
  }
}
