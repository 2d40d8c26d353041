/** The receiver of callbacks: authenticate, read, parse, call the handlers, answer. */

import * as z from 'zod'
import type { InvalidDeliveryError, Issue } from '../errors.js'
import { callLogged, consoleLogOf, type Log, logOf, sparseConsoleLogOf } from '../logger.js'
import { testDelivery } from '../notification-types.js'
import { InFlight } from '../shared/calls.js'
import { isUnauthorized, isWrongMethod } from '../shared/statuses.js'
import { excerpt } from '../shared/text.js'
import { channelFor, traced } from '../shared/tracing.js'
import { formatIssues, objectWith } from '../shared/validation.js'
import { settlesWithin } from '../shared/waits.js'
import { errorOf, isLarger, type ReadBody, routeAdvice } from './body.js'
import { type CallbackServer, closeServer } from './closing.js'
import { type Content, contentOf, readContent } from './content.js'
import {
  type DeliveryContext,
  logUndocumentedType,
  type NotificationHandler,
  type SuggestedType,
} from './handlers.js'
import { RequestHeaders } from './headers.js'
import {
  check,
  type DeliveryReceiverOptions,
  delaySchema,
  optionsSchema,
  type RefusedCallback,
} from './options.js'
import { deliveryReader, namesOf } from './parse.js'
import type { Delivery, NoPayloadSchemas, Notification, PayloadSchemas } from './schemas.js'
import { cachedAuthenticator } from './secrets.js'
import { type Authenticator, authenticator, logShortSecrets } from './verify.js'

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

/** The answer to a callback; never with a body. */
export interface CallbackAnswer {
  /** 204 for every callback of the service; 401, 405 or 413 for a request that cannot come from the service. */
  readonly status: 204 | 401 | 405 | 413
  /** The headers of the answer: `allow` with a 405, otherwise none. */
  readonly headers: Record<string, string>
}

/** A `DeliveryReceiver` with any payload schemas, from a module of either kind: ES or CommonJS. */
export type CallbackReceiver = Pick<DeliveryReceiver, 'handle' | 'drain'>

/** What adapters use of a receiver. */
export interface ReceiverCore {
  readonly maxBodyBytes: number
  readonly log: Log
  /**
   * Handles one callback. Never rejects.
   *
   * @param readBody - called only if the callback is authenticated, before anything is awaited
   * @returns the answer, and a promise of the handlers that still run after it
   */
  receive(
    method: unknown,
    headers: RequestHeaders,
    readBody: () => ReadBody | Promise<ReadBody>,
  ): Promise<{ readonly answer: CallbackAnswer; readonly stillRunning?: Promise<void> }>
  /** The open HTTP/2 connections that have brought a callback. */
  readonly sessions: Set<{ close(): unknown; destroy(): unknown }>
  /** Logs once that a parser ran before the receiver: the parser itself answers bodies that it cannot read. */
  warnOfParser(): void
}

/** What subscribers of the tracing channel get: nothing before it is known. */
interface ReceiveContext {
  type: string | undefined
  subscriptionId: number | undefined
  status: number | undefined
}

const receiveChannel = channelFor('receive')

function withStatus<Result extends { readonly answer: CallbackAnswer }>(
  context: ReceiveContext,
  result: Result,
) {
  context.status = result.answer.status
  return result
}

/** By `Symbol.for`, because an adapter may come from another loaded copy of this package. */
const receiverCore = Symbol.for('notification-subscriber')

/** @throws `ConfigurationError` for what is no receiver; callers in JavaScript may pass anything */
export function coreOf(receiver: CallbackReceiver): ReceiverCore {
  const schema = z.custom<ReceiverCore>(Boolean, 'the first argument must be a DeliveryReceiver')
  return check('The callback route', schema, Object(receiver)[receiverCore])
}

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
  readonly #options: DeliveryReceiverOptions<Payloads>
  readonly #maxBodyBytes: number
  readonly #authenticate: Authenticator | undefined
  /** With secrets from a function. */
  readonly #findAuthenticator: ReturnType<typeof cachedAuthenticator> | undefined
  readonly #read: (value: unknown, body: unknown) => Delivery<Payloads>
  readonly #log: Log
  readonly #logLoss: Log
  readonly #logRefusal: Log
  readonly #deliveries = new InFlight()
  readonly #sessions: ReceiverCore['sessions'] = new Set()
  #handlers: readonly {
    /** `undefined` for all types. */
    readonly type: string | undefined
    readonly handler: NotificationHandler<string, Payloads>
  }[] = []
  #hasWarnedOfParser = false

  /**
   * @throws `ConfigurationError` if the options cannot work, also if neither `secrets` nor
   * `allowUnauthenticated: true` is given, or both
   */
  constructor(options: DeliveryReceiverOptions<Payloads>) {
    // Names missing options even if there are no options.
    check('The delivery receiver', optionsSchema(), options ?? {})
    const { secrets, payloads = {} as Payloads, maxBodyBytes = 2 ** 20, logger } = options
    this.#options = { ...options }
    this.#maxBodyBytes = maxBodyBytes
    this.#read = deliveryReader(payloads)
    this.#log = logOf(logger)
    this.#logLoss = consoleLogOf(logger)
    this.#logRefusal = sparseConsoleLogOf(logger)
    if (secrets === undefined) this.#authenticate = () => undefined
    else if (typeof secrets === 'function')
      this.#findAuthenticator = cachedAuthenticator(secrets, this.#logLoss)
    else {
      this.#authenticate = authenticator(secrets)
      logShortSecrets(secrets, this.#logLoss)
    }
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
  on<Type extends string = never>(
    // The error about an unknown type ends with these words. With `${string}` no editor suggests them as a type.
    type: string extends Type ? string : `a documented type, or .on<string>(type, handler)${string}`,
    handler: NotificationHandler<Type, Payloads>,
  ): this
  on<Type extends SuggestedType<Payloads>>(type: Type, handler: NotificationHandler<Type, Payloads>): this
  on(type: string, handler: NotificationHandler<string, Payloads>): this {
    check('The delivery receiver', z.object({ type: z.string(), handler: z.function() }), { type, handler })
    const isKnown =
      Object.hasOwn(this.#options.payloads ?? {}, type) ||
      this.#handlers.some((registered) => registered.type === type)
    if (!isKnown) logUndocumentedType(type, this.#logLoss)
    // Copy-on-write: a delivery in flight keeps the handlers that it began with.
    this.#handlers = [...this.#handlers, { type, handler }]
    return this
  }

  /**
   * Registers a handler for notifications of every type, in addition to those of {@link DeliveryReceiver.on}.
   *
   * @throws `ConfigurationError` for a handler that is no function
   */
  onAny(handler: NotificationHandler<string, Payloads>): this {
    check('The delivery receiver', z.object({ handler: z.function() }), { handler })
    this.#handlers = [...this.#handlers, { type: undefined, handler }]
    return this
  }

  /**
   * Handles one callback: for servers and platforms that have no adapter here. Resolves, and never rejects,
   * when the handlers are done or `ackTimeoutMs` has passed. Is bound to the receiver.
   *
   * A body in base64 or compressed is decoded. A secret header must be sent once: several values are refused. `Headers` joins
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
    // Thrown and not rejected, so that every framework reports it: none would send the answer of this method.
    check('The callback route', routeSchema(), others)
    return this.#answer(request)
  }

  async #answer(request: CallbackRequest): Promise<CallbackAnswer> {
    try {
      const { method, headers, body } = request
      return (await this.#receive(method, new RequestHeaders(headers), () => ({ body }))).answer
    } catch {
      // No request, or an object whose getters throw: no framework passes this.
      return this.#refuse({ status: 401, reason: 'the request cannot be read' })
    }
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
    check('The delivery receiver', z.strictObject({ timeoutMs: delaySchema().optional() }), options)
    const { timeoutMs } = options
    const drained = this.#deliveries.whenIdle()
    if (timeoutMs === undefined) await drained
    else await settlesWithin(timeoutMs, drained)
    return this.#deliveries.count
  }

  /**
   * Stops a server of Node.js: it stops listening, answers what still comes over its connections and asks them to close, waits
   * for handlers, and ends what is left after `timeoutMs`, also connections on which nothing has arrived. Of Fastify it is
   * `app.server`. Of HTTP/2 it ends the connections that have brought a callback.
   *
   * @param options - `timeoutMs`: how long all that may take, in milliseconds. Default: 10,000
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
    check('The delivery receiver', schema, { server, options })
    const { timeoutMs = 10_000 } = options
    const startedAt = performance.now()
    await closeServer(server, timeoutMs, this.#sessions, () => this.#deliveries.count > 0)
    return this.drain({ timeoutMs: Math.max(0, startedAt + timeoutMs - performance.now()) })
  }

  /** @internal */
  get [receiverCore](): ReceiverCore {
    return {
      maxBodyBytes: this.#maxBodyBytes,
      log: this.#log,
      receive: (method, headers, readBody) => this.#receive(method, headers, readBody),
      sessions: this.#sessions,
      warnOfParser: () => {
        if (this.#hasWarnedOfParser) return
        this.#hasWarnedOfParser = true
        const message =
          'A body parser runs before the receiver, and answers what it cannot read with an error'
        this.#logLoss('warn', { event: 'callback.parsed-before' }, `${message}: ${routeAdvice}`)
      },
    }
  }

  #receive(
    ...[method, headers, readBody]: Parameters<ReceiverCore['receive']>
  ): ReturnType<ReceiverCore['receive']> {
    return traced(
      receiveChannel,
      (): ReceiveContext => ({ type: undefined, subscriptionId: undefined, status: undefined }),
      (context) => {
        const received = this.#process(context, method, headers, readBody)
        return context === undefined ? received : received.then((result) => withStatus(context, result))
      },
    )
  }

  async #process(
    context: ReceiveContext | undefined,
    ...[method, headers, readBody]: Parameters<ReceiverCore['receive']>
  ): ReturnType<ReceiverCore['receive']> {
    const isPost = String(method).toUpperCase() === 'POST'
    const authenticate = this.#authenticate ?? (isPost ? await this.#findAuthenticator?.(headers) : undefined)
    const refusal = this.#refusalOf(method, headers, authenticate)
    if (refusal) return { answer: refusal }

    // In flight from here on, so that `drain` also waits for a delivery whose body is still arriving.
    this.#deliveries.begin()
    let content: Content | undefined
    let parsed: Parsed<Payloads> | undefined
    try {
      const read = await readBody()
      // A body that a parser has read was not limited yet.
      if (read && !isLarger(read.body, this.#maxBodyBytes)) {
        content = { body: read.body, value: undefined }
        content = await readContent(read.body, headers, this.#maxBodyBytes)
        if (content) parsed = this.#parsed(this.#read(content.value, content.body), headers)
      }
    } catch (thrown) {
      parsed = this.#invalid(errorOf(content?.body, thrown), content?.value)
    }
    if (parsed === undefined) {
      this.#deliveries.end()
      const reason = `the body is larger than ${this.#maxBodyBytes} bytes`
      return { answer: this.#refuse({ status: 413, reason }) }
    }

    if (context)
      Object.assign(context, { type: parsed.fields.type, subscriptionId: parsed.fields.subscriptionId })
    let isDone = false
    const handled = this.#runHandlers(parsed).then(() => {
      isDone = true
      this.#deliveries.end()
    })
    // Most handlers are done within ten microtasks. A timer for each delivery costs 8 % of the throughput (over HTTP), and
    // one timer for all would never fire on Workers, where a timer ends with the request that set it.
    for (let step = 0; step < 10 && !isDone; step += 1) await undefined
    const { ackTimeoutMs = 2_000 } = this.#options
    if (isDone || (await settlesWithin(ackTimeoutMs, handled))) return { answer: answerWith(204) }
    this.#log(
      'warn',
      { event: 'handler.slow', ...parsed.fields, ackTimeoutMs },
      'Answered before the handlers were done; they continue',
    )
    return { answer: answerWith(204), stillRunning: handled }
  }

  #refusalOf(
    method: unknown,
    headers: RequestHeaders,
    authenticate: Authenticator | undefined,
  ): CallbackAnswer | undefined {
    if (method === undefined) {
      return this.#refuse({
        status: 405,
        reason: 'the request has no method: pass { method, headers, body }',
      })
    }
    const upperCase = String(method).toUpperCase()
    // Load balancers, monitors and browsers test that the route exists.
    if (upperCase === 'GET' || upperCase === 'HEAD') {
      this.#log('debug', { event: 'callback.probed', method }, 'Callback route probed')
      return answerWith(405)
    }
    if (upperCase !== 'POST') return this.#refuse({ status: 405, reason: 'the method is not POST' })
    if (authenticate === undefined)
      return this.#refuse({ status: 401, reason: 'there are no secrets for this request' })
    const problem = authenticate(headers)
    return problem && this.#refuse({ status: 401, ...problem })
  }

  /** Reports a refusal. Does not wait for `onRefused`: the answer must not depend on it. */
  #refuse(refused: RefusedCallback): CallbackAnswer {
    const { status } = refused
    const { onRefused } = this.#options
    const log = onRefused ? this.#log : this.#logRefusal
    const advice = isUnauthorized(status) ? ': see "401 on my route" in docs/troubleshooting.md' : ''
    log('warn', { event: 'callback.refused', ...refused }, `Callback refused${advice}`)
    const failure = { event: 'on-refused.failed', ...refused }
    void callLogged(this.#logRefusal, failure, 'onRefused failed', () => onRefused?.(refused))
    return answerWith(status)
  }

  #parsed(delivery: Delivery<Payloads>, headers: RequestHeaders): Parsed<Payloads> {
    const { subscriptionId, notification } = delivery
    const context = { subscriptionId, delivery, header: (name: string) => headers.get(name) }
    return { notification, context, fields: namesOf(delivery) }
  }

  /**
   * A body that is no delivery, with its log fields: its readable ids and type, and nothing else of it.
   *
   * @param value - the JSON value of the body, if it could be read
   */
  #invalid(error: InvalidDeliveryError, value: unknown): Parsed<Payloads> {
    const names = namesIn(error, value)
    const hasOwnSchema = Object.hasOwn(this.#options.payloads ?? {}, names.type ?? '')
    // A schema of the user's may quote the payload: in its words, and in its paths, which hold the keys of a record.
    const issues = error.issues.map(({ path, message }) =>
      hasOwnSchema && path[1] === 'payload'
        ? { path: path.slice(0, 2), message: 'is refused by its schema in `payloads`' }
        : { path, message },
    )
    return { error, fields: { issues, ...names } }
  }

  /** Resolves when the handlers, or `onInvalid`, are done. */
  async #runHandlers(parsed: Parsed<Payloads>): Promise<void> {
    if (parsed.error) return this.#reportInvalid(parsed.error, parsed.fields)
    const { subscriptionId, type } = parsed.fields
    this.#log('debug', { event: 'delivery.received', ...parsed.fields }, 'Delivery received')
    if (type === testDelivery.type && subscriptionId === testDelivery.subscriptionId) return
    // A scan, not a lookup: types come from outside, and one may be called `__proto__`.
    const handlers = this.#handlers.filter((registered) => (registered.type ?? type) === type)
    // All handlers run at the same time, and no call rejects.
    const calls = handlers.map(({ handler }) => this.#call(handler, parsed))
    for (const call of calls) await call
  }

  async #reportInvalid(error: InvalidDeliveryError, fields: InvalidFields): Promise<void> {
    const { onInvalid } = this.#options
    const log = onInvalid ? this.#log : this.#logLoss
    const loss = onInvalid ? '' : '. It is lost: give the receiver onInvalid to keep the body'
    const reason = formatIssues(fields.issues)
    log('error', { event: 'delivery.invalid', reason, ...fields }, `Not a notification delivery${loss}`)
    const failure = { event: 'on-invalid.failed', ...fields }
    await callLogged(this.#logLoss, failure, 'onInvalid failed', () => onInvalid?.(error))
  }

  async #call(
    handler: NotificationHandler<string, Payloads>,
    { notification, context, fields }: ParsedDelivery<Payloads>,
  ): Promise<void> {
    try {
      await handler(notification, context)
    } catch (error) {
      const { onError } = this.#options
      const log = onError ? this.#log : this.#logLoss
      log('error', { event: 'handler.failed', ...fields, err: error }, 'Handler failed')
      const failure = { event: 'on-error.failed', ...fields }
      const call = () => onError?.(error, notification, context)
      await callLogged(this.#logLoss, failure, 'onError failed', call)
    }
  }
}

/** A delivery, or a body that is no delivery. Log fields are read first, because a handler may change the notification. */
type Parsed<Payloads extends PayloadSchemas> =
  | ParsedDelivery<Payloads>
  | { readonly error: InvalidDeliveryError; readonly fields: InvalidFields }

interface ParsedDelivery<Payloads extends PayloadSchemas> {
  readonly notification: Notification<string, Payloads>
  readonly context: DeliveryContext<Payloads>
  readonly fields: ReturnType<typeof namesOf>
  readonly error?: undefined
}

type InvalidFields = { readonly issues: readonly Issue[] } & Partial<ReturnType<typeof namesOf>>

function namesIn({ body }: InvalidDeliveryError, value: unknown): Partial<ReturnType<typeof namesOf>> {
  try {
    // What arrived of a body that could not be read as a whole may be whole JSON.
    const { subscriptionId, notification } = Object(value ?? contentOf(body).value)
    const { id, type } = Object(notification)
    return {
      ...(Number.isSafeInteger(subscriptionId) && { subscriptionId }),
      ...(typeof id === 'string' && { notificationId: excerpt(id, 100) }),
      ...(typeof type === 'string' && { type: excerpt(type, 100) }),
    }
  } catch {
    return {}
  }
}

/** The arguments after the request: a response, a context or the environment of a platform is none of an ordinary call. */
function routeSchema() {
  return z.array(
    z.custom(
      (argument) => Object(argument) !== argument || Array.isArray(argument),
      'receiver.handle is no route, and would answer nothing: give the receiver to toNodeHandler, toWebHandler, toLambdaHandler or another adapter (docs/receiver.md)',
    ),
  )
}

function answerWith(status: CallbackAnswer['status']): CallbackAnswer {
  // A 405 must name the allowed methods (RFC 9110 section 15.5.6).
  return { status, headers: isWrongMethod(status) ? { allow: 'POST' } : {} }
}
