/** The callback route of a subscriber, safe by construction: see {@link DeliveryReceiver}. */
import type { NoPayloadSchemas, PayloadSchemas } from '../delivery/delivery.js'
import {
  createDeliveryParser,
  type DeliveryParser,
  defaultParser,
  typesWithSchemaOf,
} from '../delivery/delivery-parser.js'
import { type CallbackAnswer, DeliveryCore } from './delivery-core.js'
import type { NotificationHandler, SuggestedType } from './handlers.js'
import {
  type DeliveryReceiverOptions,
  refuseReceiver,
  requireType,
  validateDrainOptions,
  validateReceiverOptions,
} from './receiver-options.js'
import { RequestHeaders } from './request-headers.js'
import { isDocumentedType, nearestDocumentedType, typesBroughtBy } from './undocumented-type.js'

/** A callback as {@link DeliveryReceiver.handle} takes it. */
export interface CallbackRequest {
  /** The HTTP method. */
  readonly method: string | undefined
  /** The headers: a plain object with names in any case, or `Headers`. */
  readonly headers:
    | Readonly<Record<string, string | readonly string[] | undefined>>
    | {
        /** The value of a header by its name in any case, or `null`. */
        get(name: string): string | null
      }
  /** The body as text, as bytes (any `ArrayBuffer` or view on one, in UTF-8) or already parsed. */
  readonly body: unknown
}

/** @internal What the adapters build on, found by any loaded copy of this package. */
export const deliveryCore = Symbol.for('notification-subscriber')

/**
 * Receives callbacks (docs/service.md, Delivery and Authentication) and hands their notifications to handlers.
 *
 * The service never repeats a callback, ignores what the answer says, and ends the subscription after three failures in
 * a row (docs/service.md, Delivery). So only what is not from the service is refused: 401 without the right
 * `secrets`, 405 for another method than POST, 413 for a body larger than `maxBodyBytes`. Everything else is
 * answered with 204: also a body that is no delivery, which goes to `onInvalid`, and a delivery whose handler
 * throws, which goes to `onError`.
 *
 * A route for the receiver comes from `toNodeHandler`, `toWebHandler`, `toFastifyPlugin` or
 * {@link DeliveryReceiver.handle} (docs/receiver.md, Where to put the route).
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
  /** The types that have a schema of the user's. */
  readonly #typesWithSchema: readonly string[]

  /**
   * @throws `ConfigurationError` if the options cannot work, also if neither `secrets` nor
   * `allowUnauthenticated: true` is given, or both
   */
  constructor(options: DeliveryReceiverOptions<Payloads>) {
    validateReceiverOptions(options)
    const parser = parserFor(options)
    this.#core = new DeliveryCore(options, parser)
    this.#typesWithSchema = typesWithSchemaOf(parser)
  }

  /** @internal */
  get [deliveryCore](): DeliveryCore<Payloads> {
    return this.#core
  }

  /**
   * Registers a handler for one value of `notification.type`, documented or not. All handlers of a notification
   * run at the same time, and none is stopped by the failure of another. A handler that is registered while a
   * delivery is handled gets the next one. A name that is neither documented nor in `payloads` is told to the logger,
   * once, because it may be misspelt.
   *
   * @throws `ConfigurationError` for a type that is no string, or a handler that is no function
   */
  on<Type extends SuggestedType<Payloads> | (string & {})>(
    type: Type,
    handler: NotificationHandler<Type, Payloads>,
  ): this {
    requireType('string', type, 'type')
    requireType('function', handler, 'handler')
    this.#tellIfUndocumented(type)
    // The handler gets notifications of its type only, and those are what its parameter states.
    this.#core.callbacks.register(type, handler as unknown as NotificationHandler<string, Payloads>)
    return this
  }

  /**
   * Registers a handler for notifications of every type, besides those of {@link DeliveryReceiver.on}.
   *
   * @throws `ConfigurationError` for a handler that is no function
   */
  onAny(handler: NotificationHandler<string, Payloads>): this {
    requireType('function', handler, 'handler')
    this.#core.callbacks.register(undefined, handler)
    return this
  }

  #tellIfUndocumented(type: string): void {
    const isExpected = isDocumentedType(type) || this.#typesWithSchema.includes(type)
    if (isExpected || this.#core.callbacks.hasHandlerFor(type)) return
    const delivered = typesBroughtBy(type)
    if (delivered !== undefined) {
      const message = `A handler waits for "${type}", which is subscribed to and never delivered: wait for what it brings`
      this.#core.log('info', { type, delivered }, message)
      return
    }
    const nearest = nearestDocumentedType(type)
    this.#core.log(
      'info',
      nearest === undefined ? { type } : { type, nearest },
      nearest === undefined
        ? `A handler waits for "${type}", a notification type that is not documented`
        : `A handler waits for "${type}", which is not documented: is it "${nearest}" misspelt?`,
    )
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
  async handle(request: CallbackRequest): Promise<CallbackAnswer> {
    try {
      const { method, body } = request
      const headers = new RequestHeaders(request.headers)
      const refused = this.#core.admit(method, headers)
      const { answer } = refused ?? (await this.#core.receive({ kind: 'body', body }, headers))
      return answer
    } catch {
      // No request at all, or an object whose getters throw: nothing that a framework would hand over.
      return this.#core.refuse({ status: 401, reason: 'the request cannot be read' }).answer
    }
  }

  /**
   * Waits until no delivery is in flight any more: also for deliveries that were answered before their handlers were
   * done, whose body is still arriving, or that begin meanwhile. For a clean shutdown: close the server, wait until it
   * is closed, then drain.
   *
   * @param options - `timeoutMs`: how long to wait, in milliseconds. Default: without end, also for a handler that never
   * ends
   * @returns how many deliveries are still in flight: 0, unless `timeoutMs` is over
   * @throws `ConfigurationError` if `timeoutMs` is no time that can be waited for
   *
   * @example
   * ```ts
   * await new Promise((done) => server.close(done))
   * const lost = await receiver.drain({ timeoutMs: 10_000 })
   * if (lost > 0) console.error(`${lost} deliveries were still in flight`)
   * ```
   */
  async drain(options: { readonly timeoutMs?: number | undefined } = {}): Promise<number> {
    validateDrainOptions(options)
    return this.#core.drain(options.timeoutMs)
  }
}

/** @throws `ConfigurationError` for what is no receiver; callers in JavaScript may pass anything */
export function coreOf<Payloads extends PayloadSchemas>(
  receiver: DeliveryReceiver<Payloads>,
): DeliveryCore<Payloads> {
  const core: DeliveryCore<Payloads> | undefined = Object(receiver)[deliveryCore]
  return core ?? refuseReceiver()
}

function parserFor<Payloads extends PayloadSchemas>(
  options: DeliveryReceiverOptions<Payloads>,
): DeliveryParser<Payloads> {
  const { parser, payloads } = options
  if (parser !== undefined) return parser
  if (payloads !== undefined) return createDeliveryParser({ payloads })
  // Without schemas of the user's, `defaultParser` has the type that `Payloads` asks for.
  return defaultParser as DeliveryParser as unknown as DeliveryParser<Payloads>
}
