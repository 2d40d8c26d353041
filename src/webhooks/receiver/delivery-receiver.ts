/** The callback route of a subscriber, safe by construction: see {@link DeliveryReceiver}. */
import type { NoPayloadSchemas, NotificationOf, PayloadSchemas } from '../delivery/delivery.js'
import { type CallbackAnswer, createDeliveryCore, type DeliveryCore } from './delivery-core.js'
import type { NotificationFor, NotificationHandler, SuggestedType } from './handlers.js'
import { type CallbackHeaders, headerReader } from './headers.js'
import { type DeliveryReceiverOptions, requireType, validateReceiverOptions } from './receiver-options.js'

/** A callback as {@link DeliveryReceiver.handle} takes it. */
export interface CallbackRequest {
  /** The HTTP method. */
  readonly method: string | undefined
  /** The headers: a plain object with names in any case, or `Headers`. */
  readonly headers: CallbackHeaders
  /** The body as text, as bytes (any `ArrayBuffer` or view on one, in UTF-8) or already parsed. */
  readonly body: unknown
}

/** @internal What the adapters build on, found by any loaded copy of this package. */
export const deliveryCore = Symbol.for('notification-subscriber')

/**
 * Receives callbacks (interface.md sections 2.3, 4.2 and 5) and hands their notifications to handlers.
 *
 * The service never retries a delivery, ignores what the answer says, and ends the subscription after three
 * failures in a row (section 3). So only what is not from the service is refused: 401 without the right
 * `secrets`, 405 for another method than POST, 413 for a body larger than `maxBodyBytes`. Everything else is
 * answered with 204: also a body that is no delivery, which goes to `onInvalid`, and a delivery whose handler
 * throws, which goes to `onError`.
 *
 * Put it behind a route with `toNodeHandler`, `toWebHandler` or {@link DeliveryReceiver.handle}.
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
  readonly #core: DeliveryCore<Payloads>

  /**
   * @throws ConfigurationError if the options cannot work, also if neither `secrets` nor
   * `allowUnauthenticated: true` is given, or both.
   */
  constructor(options: DeliveryReceiverOptions<Payloads>) {
    validateReceiverOptions(options)
    this.#core = createDeliveryCore(options)
  }

  /** @internal */
  get [deliveryCore](): DeliveryCore<Payloads> {
    return this.#core
  }

  /**
   * Registers a handler for one value of `notification.type`, documented or not. All handlers of a notification
   * run at the same time, and none is stopped by the failure of another. A handler that is registered while a
   * delivery is handled gets the next one.
   */
  on<Type extends SuggestedType<Payloads> | (string & {})>(
    type: Type,
    handler: NotificationHandler<NotificationFor<Type, Payloads>, Payloads>,
  ): this {
    requireType('string', type, 'type')
    // It gets notifications of its type only, and those are what its parameter states.
    return this.#register(type, handler as NotificationHandler<NotificationOf<Payloads>, Payloads>)
  }

  /** Registers a handler for notifications of every type, besides those of {@link DeliveryReceiver.on}. */
  onAny(handler: NotificationHandler<NotificationOf<Payloads>, Payloads>): this {
    return this.#register(undefined, handler)
  }

  #register(
    type: string | undefined,
    handler: NotificationHandler<NotificationOf<Payloads>, Payloads>,
  ): this {
    requireType('function', handler, 'handler')
    this.#core.register(type, handler)
    return this
  }

  /**
   * Handles one callback: for servers and platforms that have no adapter here. Resolves, and never rejects,
   * when the handlers are done or `ackTimeoutMs` is over.
   *
   * The body is taken as it is: undo an encoding (base64, gzip) before. A secret header must be there once:
   * an array of values is refused. `Headers` joins what was sent twice to one text, which is compared as a
   * whole.
   *
   * @example
   * ```ts
   * const { method, headers, body } = request
   * const answer = await receiver.handle({ method, headers, body })
   * response.writeHead(answer.status, answer.headers).end()
   * ```
   */
  handle(request: CallbackRequest): Promise<CallbackAnswer> {
    return new Promise((resolve) => {
      try {
        const { method, headers, body } = request
        this.#core.handle(method, headerReader(headers), (onBody) => onBody({ body }), resolve)
      } catch {
        // No request at all, or an object whose getters throw: no framework's.
        resolve(this.#core.refuse(401))
      }
    })
  }

  /**
   * Resolves when no handler runs any more, also of deliveries that were answered before their handlers were
   * done, whose body is still arriving, or that begin while it waits. For a clean shutdown: close the server and
   * wait until it is, then drain. It waits for a handler that never ends, too.
   *
   * @example
   * ```ts
   * await new Promise((done) => server.close(done))
   * await receiver.drain()
   * ```
   */
  drain(): Promise<void> {
    return this.#core.drained()
  }
}
