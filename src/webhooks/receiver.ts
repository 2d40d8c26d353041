/** The callback route of a subscriber: authenticate, parse, call the handlers, answer. */
import type { InvalidDeliveryError } from '../errors.js'
import { type Log, logOf, lossLogOf, sparseLossLogOf } from '../logger.js'
import { callSafely, inFlight } from '../shared/calls.js'
import { settlesWithin } from '../shared/time-limit.js'
import { formatIssues } from '../shared/validation.js'
import { type BodyRead, type UnreadableBody, withinLimit } from './body.js'
import {
  classifyHandlerType,
  type DeliveryContext,
  type NotificationHandler,
  type SuggestedType,
} from './handlers.js'
import { RequestHeaders } from './headers.js'
import {
  type DeliveryReceiverOptions,
  type RefusedCallback,
  refuseReceiver,
  validateArgument,
  validateDrainOptions,
  validateReceiverOptions,
} from './options.js'
import {
  createDeliveryParser,
  type DeliveryParser,
  defaultParser,
  invalidDelivery,
  unreadableDelivery,
} from './parse.js'
import type { Delivery, NoPayloadSchemas, Notification, PayloadSchemas } from './schemas.js'
import { type Authenticator, authenticator } from './verify.js'

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

/** What to answer a callback with. There is never a body. */
export interface CallbackAnswer {
  /** 204 for every callback of the service; 401, 405 or 413 for a request that cannot come from the service. */
  readonly status: 204 | 401 | 405 | 413
  /** The headers of the answer: `allow` with a 405, otherwise none. */
  readonly headers: Record<string, string>
}

/** @internal The outcome of a callback. */
export interface CallbackOutcome {
  readonly answer: CallbackAnswer
  /** Resolves when the handlers that the answer did not wait for are done. */
  readonly stillRunning?: Promise<void>
}

/** @internal What an adapter needs of a receiver. */
export interface ReceiverCore {
  readonly maxBodyBytes: number
  readonly log: Log
  /**
   * Handles one callback. Never rejects.
   *
   * @param readBody - called only if the callback is authenticated, in the same turn; never throws or rejects
   */
  receive(
    method: unknown,
    headers: RequestHeaders,
    readBody: () => BodyRead | Promise<BodyRead>,
  ): Promise<CallbackOutcome>
}

/** @internal By `Symbol.for`, because an adapter may come from another loaded copy of this package. */
export const receiverCore = Symbol.for('notification-subscriber')

/**
 * Receives callbacks (docs/service.md, Delivery and Authentication) and hands their notifications to handlers.
 *
 * The service never repeats a callback, ignores what the answer says, and ends the subscription after three failures in
 * a row (docs/service.md, Delivery). So the receiver refuses only what cannot come from the service: 401 without the right
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
  readonly #options: DeliveryReceiverOptions<Payloads>
  readonly #authenticate: Authenticator
  readonly #parser: DeliveryParser<Payloads>
  readonly #core: ReceiverCore
  readonly #deliveries = inFlight()
  readonly #log: Log
  readonly #logLoss: Log
  readonly #logRefusal: Log
  #handlers: readonly RegisteredHandler<Payloads>[] = []

  /**
   * @throws `ConfigurationError` if the options cannot work, also if neither `secrets` nor
   * `allowUnauthenticated: true` is given, or both
   */
  constructor(options: DeliveryReceiverOptions<Payloads>) {
    validateReceiverOptions(options)
    const { secrets, payloads, maxBodyBytes = 2 ** 20, logger } = options
    this.#options = { ...options }
    this.#authenticate = secrets === undefined ? () => undefined : authenticator(secrets)
    // Without schemas, `defaultParser` has the type that `Payloads` asks for.
    this.#parser = payloads
      ? createDeliveryParser({ payloads })
      : (defaultParser as DeliveryParser as unknown as DeliveryParser<Payloads>)
    this.#log = logOf(logger)
    this.#logLoss = lossLogOf(logger)
    this.#logRefusal = sparseLossLogOf(logger)
    this.#core = { maxBodyBytes, log: this.#log, receive: this.#receive.bind(this) }
  }

  /** @internal */
  get [receiverCore](): ReceiverCore {
    return this.#core
  }

  /**
   * Registers a handler for one value of `notification.type`, documented or not. All handlers of a notification
   * run at the same time, and none is stopped by the failure of another. A handler that is registered while a
   * delivery is handled gets the next one. A name that is neither documented nor in `payloads` is logged once,
   * because it may be misspelt: without a `logger` on `console.error`, if it is nearly a documented name.
   *
   * @throws `ConfigurationError` for a type that is no string, or a handler that is no function
   */
  on<Type extends SuggestedType<Payloads> | (string & {})>(
    type: Type,
    handler: NotificationHandler<Type, Payloads>,
  ): this {
    validateArgument('string', type, 'type')
    validateArgument('function', handler, 'handler')
    this.#logUnexpectedType(type)
    // The handler gets notifications of its type only, and those are what its parameter states.
    this.#register(type, handler as unknown as NotificationHandler<string, Payloads>)
    return this
  }

  /**
   * Registers a handler for notifications of every type, besides those of {@link DeliveryReceiver.on}.
   *
   * @throws `ConfigurationError` for a handler that is no function
   */
  onAny(handler: NotificationHandler<string, Payloads>): this {
    validateArgument('function', handler, 'handler')
    this.#register(undefined, handler)
    return this
  }

  /**
   * Handles one callback: for servers and platforms that have no adapter here. Resolves, and never rejects,
   * when the handlers are done or `ackTimeoutMs` has passed.
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
      const { answer } = await this.#receive(method, new RequestHeaders(request.headers), () => ({
        kind: 'body',
        body,
      }))
      return answer
    } catch {
      // No request at all, or an object whose getters throw: nothing that a framework would hand over.
      return this.#refuse({ status: 401, reason: 'the request cannot be read' }).answer
    }
  }

  /**
   * Waits until no delivery is in flight: no body is arriving, and no handler is running, also after the answer. For a
   * clean shutdown close the server, wait until it is closed, then drain.
   *
   * @param options - `timeoutMs`: how long to wait, in milliseconds. Default: no limit
   * @returns how many deliveries are still in flight: 0, unless `timeoutMs` has passed
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
    const { timeoutMs } = options
    const drained = new Promise<void>((resolve) => this.#deliveries.whenIdle(resolve))
    if (timeoutMs === undefined) await drained
    else await settlesWithin(timeoutMs, drained)
    return this.#deliveries.count
  }

  /** Handles every callback: authenticate, read, parse, call handlers, answer. See {@link ReceiverCore.receive}. */
  async #receive(
    method: unknown,
    headers: RequestHeaders,
    readBody: () => BodyRead | Promise<BodyRead>,
  ): Promise<CallbackOutcome> {
    const refusal = this.#refusalOf(method, headers)
    if (refusal) return this.#refuse(refusal, method)

    // In flight from here on, so that `drain` also waits for a delivery whose body is still arriving.
    this.#deliveries.begin()
    const { maxBodyBytes } = this.#core
    const read = withinLimit(await readBody(), maxBodyBytes)
    if (read.kind === 'too-large') {
      this.#deliveries.end()
      return this.#refuse({ status: 413, reason: `the body is larger than ${maxBodyBytes} bytes` })
    }

    const parsed = this.#parse(read, headers)
    const progress = { isDone: false }
    const handled = this.#handle(parsed, progress)
    return this.#answerWhenHandled(parsed, handled, progress)
  }

  #refusalOf(method: unknown, headers: RequestHeaders): RefusedCallback | undefined {
    if (String(method).toUpperCase() !== 'POST') return { status: 405, reason: 'the method is not POST' }
    const problem = this.#authenticate(headers)
    return problem && { status: 401, ...problem }
  }

  /** Never throws, whatever the body is. */
  #parse(read: { readonly kind: 'body'; readonly body: unknown } | UnreadableBody, headers: RequestHeaders) {
    if (read.kind === 'unreadable') return invalid(invalidDelivery(read.body, read.issues, read.cause))
    try {
      const { data, error } = this.#parser.safeParse(read.body)
      return error ? invalid(error) : valid(data, headers)
    } catch (thrown) {
      // The getters of a parsed object may throw.
      return invalid(unreadableDelivery(read.body, thrown))
    }
  }

  /** Resolves when the handlers, or `onInvalid`, are done. */
  async #handle(parsed: ParsedBody<Payloads>, progress: Progress): Promise<void> {
    if (parsed.kind === 'invalid') await this.#reportInvalid(parsed)
    // All handlers run at the same time, and none rejects.
    else for (const handling of this.#callHandlers(parsed)) await handling
    progress.isDone = true
    this.#deliveries.end()
  }

  #callHandlers(delivery: ParsedDelivery<Payloads>): readonly Promise<void>[] {
    const { type, logFields } = delivery
    this.#log('debug', { event: 'delivery.received', ...logFields }, 'Delivery received')
    // A scan, not a lookup: types come from outside, and one may be called `__proto__`.
    const handlers = this.#handlers.filter((registered) => (registered.type ?? type) === type)
    return handlers.map(({ handler }) => this.#call(handler, delivery))
  }

  async #call(
    handler: NotificationHandler<string, Payloads>,
    delivery: ParsedDelivery<Payloads>,
  ): Promise<void> {
    try {
      await handler(delivery.notification, delivery.context)
    } catch (error) {
      await this.#reportError(error, delivery)
    }
  }

  /** Answers as soon as the handlers are done or `ackTimeoutMs` has passed. */
  async #answerWhenHandled(
    { logFields }: ParsedBody<Payloads>,
    handled: Promise<void>,
    progress: Progress,
  ): Promise<CallbackOutcome> {
    const answer = answerWith(204)
    if (await isDoneSoon(progress)) return { answer }
    const { ackTimeoutMs = 2_000 } = this.#options
    if (await settlesWithin(ackTimeoutMs, handled)) return { answer }
    this.#log(
      'warn',
      { event: 'handler.slow', ...logFields, ackTimeoutMs },
      'Answered before the handlers were done; they continue',
    )
    return { answer, stillRunning: handled }
  }

  /** Reports a refusal. Does not wait for `onRefused`: the answer to a stranger must not depend on it. */
  #refuse(refused: RefusedCallback, method?: unknown): CallbackOutcome {
    const { onRefused } = this.#options
    if (refused.status === 405 && isProbe(method)) {
      this.#log('debug', { event: 'callback.probed', method }, 'Callback route probed')
      return { answer: answerWith(405) }
    }
    const log = onRefused ? this.#log : this.#logRefusal
    const advice = refused.status === 401 ? ': see "401 on my route" in docs/troubleshooting.md' : ''
    log('warn', { event: 'callback.refused', ...refused }, `Callback refused${advice}`)
    if (onRefused) {
      void callSafely(
        () => onRefused(refused),
        (err) =>
          this.#logRefusal('error', { event: 'on-refused.failed', ...refused, err }, 'onRefused failed'),
      )
    }
    return { answer: answerWith(refused.status) }
  }

  /** Resolves when `onInvalid` is done. */
  async #reportInvalid({ error, logFields }: InvalidBody): Promise<void> {
    const { onInvalid } = this.#options
    const log = onInvalid ? this.#log : this.#logLoss
    const loss = onInvalid ? '' : '. It is lost: give the receiver onInvalid to keep the body'
    const reason = formatIssues(error.issues)
    log('error', { event: 'delivery.invalid', reason, ...logFields }, `Not a notification delivery${loss}`)
    if (onInvalid === undefined) return
    await callSafely(
      () => onInvalid(error),
      (err) => this.#logLoss('error', { event: 'on-invalid.failed', ...logFields, err }, 'onInvalid failed'),
    )
  }

  /** Resolves when `onError` is done. */
  async #reportError(error: unknown, delivery: ParsedDelivery<Payloads>): Promise<void> {
    const { notification, context, logFields } = delivery
    const { onError } = this.#options
    const log = onError ? this.#log : this.#logLoss
    log('error', { event: 'handler.failed', ...logFields, err: error }, 'Handler failed')
    if (onError === undefined) return
    await callSafely(
      () => onError(error, notification, context),
      (err) => this.#logLoss('error', { event: 'on-error.failed', ...logFields, err }, 'onError failed'),
    )
  }

  #register(type: string | undefined, handler: NotificationHandler<string, Payloads>): void {
    // Copy-on-write: a delivery in flight keeps the handlers that it began with.
    this.#handlers = [...this.#handlers, { type, handler }]
  }

  #logUnexpectedType(type: string): void {
    const hasSchema = Object.hasOwn(this.#options.payloads ?? {}, type)
    if (hasSchema || this.#handlers.some((registered) => registered.type === type)) return
    const known = classifyHandlerType(type)
    if (known.kind === 'subscribable') {
      const { delivered } = known
      this.#logLoss(
        'warn',
        { event: 'handler.type-not-delivered', type, delivered },
        'A handler is registered for a type that is never delivered: register it for the types that the field `delivered` lists',
      )
    } else if (known.kind === 'misspelt') {
      const { nearest } = known
      this.#logLoss(
        'warn',
        { event: 'handler.type-misspelt', type, nearest },
        'A handler is registered for a type that is not documented: the field `nearest` has the closest one that is',
      )
    } else if (known.kind === 'undocumented') {
      this.#log(
        'info',
        { event: 'handler.type-undocumented', type },
        'A handler is registered for a type that is not documented',
      )
    }
  }
}

/** @throws `ConfigurationError` for what is no receiver; callers in JavaScript may pass anything */
export function coreOf<Payloads extends PayloadSchemas>(receiver: DeliveryReceiver<Payloads>): ReceiverCore {
  const core: ReceiverCore | undefined = Object(receiver)[receiverCore]
  return core ?? refuseReceiver()
}

interface RegisteredHandler<Payloads extends PayloadSchemas> {
  /** `undefined` for all types. */
  readonly type: string | undefined
  readonly handler: NotificationHandler<string, Payloads>
}

/** A delivery, with what its handlers and its log lines need. */
interface ParsedDelivery<Payloads extends PayloadSchemas> {
  readonly kind: 'valid'
  readonly notification: Notification<string, Payloads>
  readonly context: DeliveryContext<Payloads>
  /** Type and log fields are read first, because a handler may change the notification. */
  readonly type: string
  readonly logFields: object
}

/** A body that is no delivery. */
interface InvalidBody {
  readonly kind: 'invalid'
  readonly error: InvalidDeliveryError
  readonly logFields: object
}

type ParsedBody<Payloads extends PayloadSchemas> = ParsedDelivery<Payloads> | InvalidBody

function valid<Payloads extends PayloadSchemas>(
  delivery: Delivery<Payloads>,
  headers: RequestHeaders,
): ParsedDelivery<Payloads> {
  const { subscriptionId, notification } = delivery
  const { id, type } = notification
  return {
    kind: 'valid',
    notification,
    context: { subscriptionId, delivery, header: (name) => headers.get(name) },
    type,
    logFields: { subscriptionId, notificationId: id, type },
  }
}

function invalid(error: InvalidDeliveryError): InvalidBody {
  return { kind: 'invalid', error, logFields: { issues: error.issues } }
}

function answerWith(status: CallbackAnswer['status']): CallbackAnswer {
  // A 405 must name the allowed methods (RFC 9110 section 15.5.6).
  return { status, headers: status === 405 ? { allow: 'POST' } : {} }
}

/** Whether a request only looks whether the route exists, as load balancers, monitors and browsers do. */
function isProbe(method: unknown): boolean {
  return ['GET', 'HEAD'].includes(String(method).toUpperCase())
}

/** A flag, because the state of a promise cannot be read. */
interface Progress {
  isDone: boolean
}

/**
 * Whether handlers are done within ten microtasks, which most are. No timer is set: with a timer for each delivery a
 * receiver would take a tenth fewer of them per second.
 */
async function isDoneSoon(progress: Progress): Promise<boolean> {
  for (let turn = 0; turn < 10 && !progress.isDone; turn += 1) await undefined
  return progress.isDone
}
