/** A callback route for Fastify. */
import * as z from 'zod'
import { type NodeRequest, type NodeResponse, toNodeHandler } from './node.js'
import { validateRouteOptions } from './options.js'
import type { DeliveryReceiver } from './receiver.js'
import type { PayloadSchemas } from './schemas.js'

/** Options of {@link toFastifyPlugin}. */
export interface FastifyPluginOptions {
  /** The path that callbacks are sent to, below the prefix of the plugin, if it has one. */
  readonly path: string
}

/** The parts of a Fastify instance that the plugin uses. */
export interface FastifyInstanceLike {
  /** Adds a route. */
  route(options: {
    /** The HTTP method. */
    method: 'POST'
    /** The path. */
    url: string
    /** Called before Fastify looks at the body. */
    onRequest(
      request: {
        /** The request of Node.js. */
        readonly raw: NodeRequest
      },
      reply: {
        /** The response of Node.js. */
        readonly raw: NodeResponse
        /** Leaves the answer to the plugin. */
        hijack(): unknown
      },
    ): void
    /** Called after Fastify has read the body. */
    handler(): void
  }): unknown
}

/**
 * Makes a plugin for Fastify that adds a route for callbacks. The route answers as {@link toNodeHandler} does, whatever
 * content type parsers, body limits and error handlers the app has: Fastify itself would answer malformed JSON with
 * 400, a large body with 413 and an unknown content type with 415, and each counts as a failed delivery. `onRequest`
 * hooks of the app run before the route, other hooks that come before an answer do not.
 *
 * @throws `ConfigurationError` for what is no receiver, or options that cannot work
 *
 * @example
 * ```ts
 * await fastify.register(toFastifyPlugin(receiver, { path: '/notifications' }))
 * ```
 */
export function toFastifyPlugin<Payloads extends PayloadSchemas>(
  receiver: DeliveryReceiver<Payloads>,
  options: FastifyPluginOptions,
): (app: FastifyInstanceLike) => Promise<void> {
  const handleCallback = toNodeHandler(receiver)
  // Without options at all, the missing path is named, too.
  validateRouteOptions({ path: z.string() }, options ?? {})
  const { path } = options
  return async function notifications(app) {
    app.route({
      method: 'POST',
      url: path,
      // Not in `handler`: before that is called, Fastify refuses a malformed content type, whatever parser there is.
      onRequest(request, reply) {
        reply.hijack()
        handleCallback(request.raw, reply.raw)
      },
      handler() {
        // Never called: a hijacked request goes no further.
      },
    })
  }
}
