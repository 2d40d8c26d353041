/** The public receiver of callbacks; receiver-core.ts handles them. */
import type { NotificationHandler, SuggestedType } from './handlers.js'
import { RequestHeaders } from './headers.js'
import {
  type DeliveryReceiverOptions,
  refuseReceiver,
  validateArgument,
  validateDrainOptions,
  validateReceiverOptions,
} from './options.js'
import { type CallbackAnswer, ReceiverCore } from './receiver-core.js'
import type { NoPayloadSchemas, PayloadSchemas } from './schemas.js'

/** A callback, the argument of {@link DeliveryReceiver.handle}. */
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

/** By `Symbol.for`, because an adapter may come from another loaded copy of this package. */
const receiverCore = Symbol.for('notification-subscriber')

/**
 * Receives callbacks (docs/service.md, Delivery and Authentication) and passes their notifications to handlers.
 *
 * The service never repeats a callback, and ends the subscription after three failures in a row (docs/service.md,
 * Delivery). So the receiver refuses only requests that cannot come from the service: 401 without the right `secrets`, 405
 * for another method than POST, 413 for a body larger than `maxBodyBytes`. It answers 204 to all others. A body that is no
 * delivery goes to `onInvalid`, the error of a handler to `onError`.
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
  readonly #core: ReceiverCore<Payloads>

  /**
   * @throws `ConfigurationError` if the options cannot work, also if neither `secrets` nor
   * `allowUnauthenticated: true` is given, or both
   */
  constructor(options: DeliveryReceiverOptions<Payloads>) {
    validateReceiverOptions(options)
    this.#core = new ReceiverCore(options)
  }

  /** @internal */
  get [receiverCore](): ReceiverCore<Payloads> {
    return this.#core
  }

  /**
   * Registers a handler for one value of `notification.type`: a documented one, one of `payloads`, or any other by
   * `.on<string>(…)`. All handlers of a notification
   * run at the same time and fail independently. A handler that is registered during a
   * delivery gets the next one. A name that is neither documented nor in `payloads` is logged once,
   * because it may be misspelt: without a `logger` on `console.error`.
   *
   * @throws `ConfigurationError` for a type that is no string, or a handler that is no function
   */
  on<Type extends string = never>(
    type: string extends Type ? string : never,
    handler: NotificationHandler<Type, Payloads>,
  ): this
  on<Type extends SuggestedType<Payloads>>(type: Type, handler: NotificationHandler<Type, Payloads>): this
  on(type: string, handler: NotificationHandler<string, Payloads>): this {
    validateArgument('string', type, 'type')
    validateArgument('function', handler, 'handler')
    this.#core.register(type, handler)
    return this
  }

  /**
   * Registers a handler for notifications of every type, in addition to those of {@link DeliveryReceiver.on}.
   *
   * @throws `ConfigurationError` for a handler that is no function
   */
  onAny(handler: NotificationHandler<string, Payloads>): this {
    validateArgument('function', handler, 'handler')
    this.#core.register(undefined, handler)
    return this
  }

  /**
   * Handles one callback: for servers and platforms that have no adapter here. Resolves, and never rejects,
   * when the handlers are done or `ackTimeoutMs` has passed.
   *
   * The body must be decoded (base64, gzip). A secret header must be sent once: an array of values is refused. `Headers`
   * joins a header that was sent twice to one text, which is compared as a whole.
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
      return (await this.#core.receive(method, headers, () => ({ kind: 'body', body }))).answer
    } catch {
      // No request, or an object whose getters throw: no framework passes this.
      return this.#core.refuse({ status: 401, reason: 'the request cannot be read' })
    }
  }

  /**
   * Waits until no delivery is in flight: no body is arriving, and no handler is running, also after the answer. For a
   * clean shutdown close the server, wait until it is closed, then drain.
   *
   * @param options - `timeoutMs`: how long to wait, in milliseconds. Default: no limit
   * @returns how many deliveries are still in flight: 0, unless `timeoutMs` has passed
   * @throws `ConfigurationError` if `timeoutMs` is invalid
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

/** The interface of a receiver for adapters. */
export type AdapterCore = Pick<
  ReceiverCore<PayloadSchemas>,
  'maxBodyBytes' | 'log' | 'receive' | 'warnOfParser'
>

/** @throws `ConfigurationError` for what is no receiver; callers in JavaScript may pass anything */
export function coreOf<Payloads extends PayloadSchemas>(receiver: DeliveryReceiver<Payloads>): AdapterCore {
  const core: AdapterCore | undefined = Object(receiver)[receiverCore]
  return core ?? refuseReceiver()
}
