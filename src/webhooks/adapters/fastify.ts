/** A callback route for Fastify. */
import * as z from 'zod'
import { validate } from '../../shared/validation.js'
import { coreOf } from '../core.js'
import { invalidRoute } from '../options.js'
import type { CallbackReceiver } from '../receiver.js'
import { handleNodeRequest } from './node.js'
import type { NodeRequest, NodeResponse } from './node-types.js'

/** Options of {@link toFastifyPlugin}. */
export interface FastifyPluginOptions {
  /** The path of the callbacks, below the plugin's prefix, if any. */
  readonly path: string
}

/** The parts of a Fastify instance that the plugin uses. */
export interface FastifyInstanceLike {
  /** Adds a route. */
  route(options: {
    method: 'POST'
    url: string
    /** Called before Fastify looks at the body. */
    onRequest(
      request: Pick<NodeRequest, 'headers'> & Readonly<Record<'raw', NodeRequest>>,
      reply: Readonly<Record<'raw', NodeResponse> & Record<'hijack', () => unknown>>,
    ): void
    /** Called after Fastify has read the body. */
    handler(): void
  }): unknown
}

/**
 * Makes a plugin for Fastify with a route that answers as {@link toNodeHandler} does, whatever the app's parsers, limits and
 * error handlers are. The app's `onRequest` hooks run before the route, later hooks do not.
 *
 * @throws `ConfigurationError` for what is no receiver, or options that cannot work
 *
 * @example
 * ```ts
 * await fastify.register(toFastifyPlugin(receiver, { path: '/notifications' }))
 * ```
 */
export function toFastifyPlugin(
  receiver: CallbackReceiver,
  options: FastifyPluginOptions,
): (app: FastifyInstanceLike) => Promise<void> {
  const core = coreOf(receiver)
  validate(z.strictObject({ path: z.string() }), options ?? {}, invalidRoute)
  return async function notifications(app) {
    app.route({
      method: 'POST',
      url: options.path,
      // Not in `handler`: before it, Fastify refuses a malformed content type.
      onRequest(request, reply) {
        reply.hijack()
        void handleNodeRequest(core, request.raw, reply.raw, request.headers)
      },
      handler() {
        // Never called: a hijacked request goes no further.
      },
    })
  }
}
