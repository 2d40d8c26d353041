/** The receiver of callbacks, as an app uses it. `core.ts` answers them. */
import * as z from 'zod'
import type {
  DocumentedNotificationType,
  documentedNotificationTypes,
  NotificationType,
} from '../notification-types.js'
import { objectWith, validate } from '../shared/validation.js'
import { settlesWithin } from '../shared/waits.js'
import type { CallbackServer } from './adapters/node-types.js'
import { closeServer } from './closing.js'
import { type CallbackAnswer, ReceiverCore, receiverCore } from './core.js'
import type { NotificationHandler } from './handlers.js'
import type { HeadersLike } from './headers.js'
import {
  type DeliveryReceiverOptions,
  delaySchema,
  invalidReceiver,
  optionsSchema,
  wrongAdapter,
} from './options.js'
import type { NoPayloadSchemas, PayloadSchemas } from './schemas.js'

/** A callback, the argument of {@link DeliveryReceiver.handle}. */
export interface CallbackRequest {
  readonly method: string | undefined
  /** The headers: a plain object with names in any case, or `Headers`. */
  readonly headers: HeadersLike
  /** The body as text, as bytes (any `ArrayBuffer` or view on one, in UTF-8) or already parsed. */
  readonly body: unknown
}

/**
 * The words of the error about an unknown type. They end with `${string}`, so that no editor suggests them as a type.
 *
 * @inline
 */
type Expected<Type extends string> = Type extends NotificationType
  ? `one that \`${Type}\` brings, such as ${(typeof documentedNotificationTypes)[Type][0]}${string}`
  : `a documented type, or .on<string>(type, handler)${string}`

/** A `DeliveryReceiver` with any payload schemas, from a module of either kind: ES or CommonJS. */
export type CallbackReceiver = Pick<DeliveryReceiver, 'handle' | 'drain'>

/**
 * Receives callbacks (docs/service.md, Delivery and Authentication) and passes their notifications to handlers.
 *
 * The service never repeats a callback, and ends the subscription after three failures in a row (docs/service.md,
 * Delivery). So the receiver refuses only requests that cannot come from the service: 401 without the right `secrets`, 405
 * for another method than POST, 413 for a body larger than `maxBodyBytes`. It answers 204 to all others. A body that is no
 * delivery goes to `onInvalid`, the error of a handler to `onError`.
 *
 * A route for the receiver comes from the adapter of your framework, or {@link DeliveryReceiver.handle} (docs/receiver.md,
 * Where to put the route).
 *
 * @example
 * ```ts
 * const receiver = new DeliveryReceiver({ secrets: { token: [currentToken, previousToken] } })
 *   .on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => console.log(subscriptionId, payload.callId))
 *   .onAny((notification) => queue.add(notification))
 * createServer(toNodeHandler(receiver)).listen(8080)
 * ```
 */
export class DeliveryReceiver<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  readonly #core: ReceiverCore<Payloads>

  /**
   * @throws `ConfigurationError` if the options cannot work, also if neither `secrets` nor
   * `allowUnauthenticated: true` is given, or both
   */
  constructor(options: DeliveryReceiverOptions<Payloads>) {
    // Names missing options even if there are no options.
    validate(optionsSchema(), options ?? {}, invalidReceiver)
    this.#core = new ReceiverCore(options)
    this.handle = this.handle.bind(this)
  }

  /**
   * Registers a handler for one value of `notification.type`: a documented one, one of `payloads`, or any other by
   * `.on<string>(…)`. All handlers of a notification run at the same time and fail independently. A handler that is
   * registered during a delivery gets the next one. A name that is neither documented nor in `payloads` is logged once,
   * because it may be misspelt: without a `logger` on `console.error`.
   *
   * @throws `ConfigurationError` for a type that is no string, or a handler that is no function
   */
  on<Type extends DocumentedNotificationType | (keyof Payloads & string)>(
    type: Type,
    handler: NotificationHandler<Type, Payloads>,
  ): this
  on<Type extends string = never>(
    type: string extends Type ? string : Expected<Type>,
    handler: NotificationHandler<Type, Payloads>,
  ): this
  on(type: string, handler: NotificationHandler<string, Payloads>): this {
    validate(z.object({ type: z.string(), handler: z.function() }), { type, handler }, invalidReceiver)
    this.#core.addHandler(type, handler)
    return this
  }

  /**
   * Registers a handler for notifications of every type, in addition to those of {@link DeliveryReceiver.on}.
   *
   * @throws `ConfigurationError` for a handler that is no function
   */
  onAny(handler: NotificationHandler<string, Payloads>): this {
    validate(z.object({ handler: z.function() }), { handler }, invalidReceiver)
    this.#core.addHandler(undefined, handler)
    return this
  }

  /**
   * Handles one callback: for servers and platforms that have no adapter here. Resolves, and never rejects,
   * when the handlers are done or `ackTimeoutMs` has passed. Is bound to the receiver.
   *
   * A secret header must be sent once: several values are refused. `Headers` joins
   * a header that was sent twice to one text, which is compared as a whole.
   *
   * @throws `ConfigurationError` if a second argument shows that a framework calls it as a route
   *
   * @example
   * ```ts
   * const { method, headers, body } = request
   * const answer = await receiver.handle({ method, headers, body })
   * response.writeHead(answer.status, answer.headers).end()
   * ```
   */
  handle(request: CallbackRequest, ...others: never[]): Promise<CallbackAnswer> {
    // A framework also passes a response or a context. The error is thrown, because not every framework reports a rejection.
    if (typeof others[0] === 'object') throw wrongAdapter('receiver.handle is no route')
    const { method, headers, body } = request
    return this.#core.receive(method, headers, () => ({ body })).then(({ answer }) => answer)
  }

  /**
   * Waits until no delivery is in flight: no body is arriving, and no handler is running, also after the answer. For a
   * clean shutdown use {@link DeliveryReceiver.close}.
   *
   * @param options - `timeoutMs`: how long to wait, in milliseconds. Default: no limit
   * @returns how many deliveries are still in flight: 0, unless `timeoutMs` has passed
   * @throws `ConfigurationError` if `timeoutMs` is invalid
   *
   * @example
   * ```ts
   * const lost = await receiver.drain({ timeoutMs: 10_000 })
   * if (lost > 0) console.error(`${lost} deliveries were still in flight`)
   * ```
   */
  async drain(options: { readonly timeoutMs?: number | undefined } = {}): Promise<number> {
    validate(z.strictObject({ timeoutMs: delaySchema().optional() }), options, invalidReceiver)
    const { timeoutMs } = options
    const { deliveries } = this.#core
    const drained = deliveries.whenIdle()
    await (timeoutMs === undefined ? drained : settlesWithin(timeoutMs, drained))
    return deliveries.count
  }

  /**
   * Stops a server of Node.js without losing a callback. The server stops listening, and asks its senders to close their
   * connections. Callbacks that still arrive are answered. Then waits for the handlers. After `timeoutMs` the remaining
   * connections are closed.
   *
   * @param server - with Fastify, `app.server`
   * @param options - `timeoutMs`: how long the stop may take, in milliseconds. Default: 10,000
   * @returns how many deliveries are still in flight: 0, unless `timeoutMs` has passed
   * @throws `ConfigurationError` for what is no server, and if `timeoutMs` is invalid
   *
   * @example
   * ```ts
   * const lost = await receiver.close(server, { timeoutMs: 10_000 })
   * if (lost > 0) console.error(`${lost} deliveries were still in flight`)
   * ```
   */
  async close(
    server: CallbackServer,
    options: { readonly timeoutMs?: number | undefined } = {},
  ): Promise<number> {
    const schema = z.object({
      server: objectWith(['close', 'prependListener'], 'a server of Node.js; of Fastify, `app.server`'),
      options: z.strictObject({ timeoutMs: delaySchema().optional() }),
    })
    validate(schema, { server, options }, invalidReceiver)
    const { timeoutMs = 10_000 } = options
    const startedSince = performance.now()
    const { connections, deliveries } = this.#core
    await closeServer(server, timeoutMs, connections.of(server), () => deliveries.count > 0)
    return this.drain({ timeoutMs: Math.max(0, startedSince + timeoutMs - performance.now()) })
  }

  /** @internal */
  get [receiverCore](): ReceiverCore<Payloads> {
    return this.#core
  }
}
