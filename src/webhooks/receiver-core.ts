/** Handles a callback: authenticate, read, parse, call the handlers, answer. */
import type { InvalidDeliveryError } from '../errors.js'
import { type Log, logOf, lossLogOf, sparseLossLogOf } from '../logger.js'
import { callSafely, inFlight } from '../shared/calls.js'
import { excerpt } from '../shared/text.js'
import { settlesWithin } from '../shared/time-limit.js'
import { formatIssues } from '../shared/validation.js'
import { type BodyRead, routeAdvice } from './body.js'
import { type DeliveryContext, logUndocumentedType, type NotificationHandler } from './handlers.js'
import type { RequestHeaders } from './headers.js'
import type { DeliveryReceiverOptions, RefusedCallback } from './options.js'
import {
  createDeliveryParser,
  type DeliveryParser,
  isLarger,
  unreadableDelivery,
  valueOfBody,
} from './parse.js'
import type { Delivery, Notification, PayloadSchemas } from './schemas.js'
import { type Authenticator, authenticator, logShortSecrets } from './verify.js'

/** The answer to a callback; never with a body. */
export interface CallbackAnswer {
  /** 204 for every callback of the service; 401, 405 or 413 for a request that cannot come from the service. */
  readonly status: 204 | 401 | 405 | 413
  /** The headers of the answer: `allow` with a 405, otherwise none. */
  readonly headers: Record<string, string>
}

/** The outcome of a callback. */
export interface CallbackOutcome {
  readonly answer: CallbackAnswer
  /** Resolves when the handlers that still run after the answer are done. */
  readonly stillRunning?: Promise<void>
}

/** The state of a receiver, and its interface for adapters. */
export class ReceiverCore<Payloads extends PayloadSchemas> {
  readonly maxBodyBytes: number
  readonly log: Log
  readonly #logLoss: Log
  readonly #logRefusal: Log
  readonly #options: DeliveryReceiverOptions<Payloads>
  readonly #authenticate: Authenticator
  readonly #parser: DeliveryParser<Payloads>
  readonly #deliveries = inFlight()
  #handlers: readonly RegisteredHandler<Payloads>[] = []
  #hasWarnedOfParser = false

  /** @param options - valid ones */
  constructor(options: DeliveryReceiverOptions<Payloads>) {
    const { secrets, payloads = {} as Payloads, maxBodyBytes = 2 ** 20, logger } = options
    this.#options = { ...options }
    this.maxBodyBytes = maxBodyBytes
    this.#authenticate = secrets === undefined ? () => undefined : authenticator(secrets)
    this.#parser = createDeliveryParser({ payloads })
    this.log = logOf(logger)
    this.#logLoss = lossLogOf(logger)
    this.#logRefusal = sparseLossLogOf(logger)
    if (secrets !== undefined) logShortSecrets(secrets, this.#logLoss)
  }

  /** @param type - `undefined` for all types */
  register(type: string | undefined, handler: NotificationHandler<string, Payloads>): void {
    const isKnown = type === undefined || Object.hasOwn(this.#options.payloads ?? {}, type)
    const isLogged = this.#handlers.some((registered) => registered.type === type)
    if (!isKnown && !isLogged) logUndocumentedType(type, this.#logLoss)
    // Copy-on-write: a delivery in flight keeps the handlers that it began with.
    this.#handlers = [...this.#handlers, { type, handler }]
  }

  /** Resolves when no delivery is in flight, or after a time limit, with the number of deliveries in flight. */
  async drain(timeoutMs: number | undefined): Promise<number> {
    const drained = new Promise<void>((resolve) => this.#deliveries.whenIdle(resolve))
    if (timeoutMs === undefined) await drained
    else await settlesWithin(timeoutMs, drained)
    return this.#deliveries.count
  }

  /**
   * Handles one callback. Never rejects.
   *
   * @param readBody - called only if the callback is authenticated, in the same turn; never throws or rejects
   */
  async receive(
    method: unknown,
    headers: RequestHeaders,
    readBody: () => BodyRead | Promise<BodyRead>,
  ): Promise<CallbackOutcome> {
    const refusal = this.#refusalOf(method, headers)
    if (refusal) return { answer: this.refuse(refusal, method) }

    // In flight from here on, so that `drain` also waits for a delivery whose body is still arriving.
    this.#deliveries.begin()
    const parsed = this.#parse(await readBody(), headers)
    if (parsed === 'too-large') {
      this.#deliveries.end()
      return {
        answer: this.refuse({ status: 413, reason: `the body is larger than ${this.maxBodyBytes} bytes` }),
      }
    }

    let isDone = false
    const handled = this.#handle(parsed).then(() => {
      isDone = true
      this.#deliveries.end()
    })
    // Most handlers are done within ten microtasks. With a timer for each delivery a receiver would take a tenth fewer.
    for (let turn = 0; turn < 10 && !isDone; turn += 1) await undefined
    const { ackTimeoutMs = 2_000 } = this.#options
    if (isDone || (await settlesWithin(ackTimeoutMs, handled))) return { answer: answerWith(204) }
    this.log(
      'warn',
      { event: 'handler.slow', ...parsed.logFields, ackTimeoutMs },
      'Answered before the handlers were done; they continue',
    )
    return { answer: answerWith(204), stillRunning: handled }
  }

  /** Logs once that a parser ran before the receiver: the parser itself answers bodies that it cannot read. */
  warnOfParser(): void {
    if (this.#hasWarnedOfParser) return
    this.#hasWarnedOfParser = true
    const message = 'A body parser runs before the receiver, and answers what it cannot read with an error'
    this.#logLoss('warn', { event: 'callback.parsed-before' }, `${message}: ${routeAdvice}`)
  }

  #refusalOf(method: unknown, headers: RequestHeaders): RefusedCallback | undefined {
    if (String(method).toUpperCase() !== 'POST') return { status: 405, reason: 'the method is not POST' }
    const problem = this.#authenticate(headers)
    return problem && { status: 401, ...problem }
  }

  /** Never throws, for any body. */
  #parse(read: BodyRead, headers: RequestHeaders): ParsedDelivery<Payloads> | InvalidBody | 'too-large' {
    if (read.kind === 'too-large') return 'too-large'
    if (read.kind === 'unreadable') return invalid(read.error, this.#options.payloads)
    try {
      // A body that a parser has read was not limited yet.
      if (isLarger(read.body, this.maxBodyBytes)) return 'too-large'
      const { data, error } = this.#parser.safeParse(read.body)
      return error ? invalid(error, this.#options.payloads) : valid(data, headers)
    } catch (thrown) {
      // The getters of an object that was parsed before may throw.
      return invalid(unreadableDelivery(read.body, thrown), this.#options.payloads)
    }
  }

  /** Resolves when the handlers, or `onInvalid`, are done. */
  async #handle(parsed: ParsedDelivery<Payloads> | InvalidBody): Promise<void> {
    if (parsed.kind === 'invalid') return this.#reportInvalid(parsed)
    const { type, logFields } = parsed
    this.log('debug', { event: 'delivery.received', ...logFields }, 'Delivery received')
    // A scan, not a lookup: types come from outside, and one may be called `__proto__`.
    const handlers = this.#handlers.filter((registered) => (registered.type ?? type) === type)
    // All handlers run at the same time, and no call rejects.
    const calls = handlers.map(({ handler }) => this.#call(handler, parsed))
    for (const call of calls) await call
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

  /** Reports a refusal. Does not wait for `onRefused`: the answer must not depend on it. */
  refuse(refused: RefusedCallback, method?: unknown): CallbackAnswer {
    const { onRefused } = this.#options
    if (refused.status === 405 && isProbe(method)) {
      this.log('debug', { event: 'callback.probed', method }, 'Callback route probed')
      return answerWith(405)
    }
    const log = onRefused ? this.log : this.#logRefusal
    const advice = refused.status === 401 ? ': see "401 on my route" in docs/troubleshooting.md' : ''
    log('warn', { event: 'callback.refused', ...refused }, `Callback refused${advice}`)
    if (onRefused) {
      void callSafely(
        () => onRefused(refused),
        (err) =>
          this.#logRefusal('error', { event: 'on-refused.failed', ...refused, err }, 'onRefused failed'),
      )
    }
    return answerWith(refused.status)
  }

  /** Resolves when `onInvalid` is done. */
  async #reportInvalid({ error, reason, logFields }: InvalidBody): Promise<void> {
    const { onInvalid } = this.#options
    const log = onInvalid ? this.log : this.#logLoss
    const loss = onInvalid ? '' : '. It is lost: give the receiver onInvalid to keep the body'
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
    const log = onError ? this.log : this.#logLoss
    log('error', { event: 'handler.failed', ...logFields, err: error }, 'Handler failed')
    if (onError === undefined) return
    await callSafely(
      () => onError(error, notification, context),
      (err) => this.#logLoss('error', { event: 'on-error.failed', ...logFields, err }, 'onError failed'),
    )
  }
}

interface RegisteredHandler<Payloads extends PayloadSchemas> {
  /** `undefined` for all types. */
  readonly type: string | undefined
  readonly handler: NotificationHandler<string, Payloads>
}

/** A delivery, with the data for its handlers and log lines. */
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
  readonly reason: string
  readonly logFields: object
}

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

/** The log fields of an invalid body: only its readable ids and type, nothing else of it. */
function invalid(error: InvalidDeliveryError, payloads: PayloadSchemas = {}): InvalidBody {
  const names = namesIn(error.body)
  const hasOwnSchema = Object.hasOwn(payloads, names.type ?? '')
  // A schema of the user's may quote the payload: in its words, and in its paths, which hold the keys of a record.
  const issues = error.issues.map(({ path, message }) =>
    hasOwnSchema && path[1] === 'payload'
      ? { path: path.slice(0, 2), message: 'is refused by its schema in `payloads`' }
      : { path, message },
  )
  return { kind: 'invalid', error, reason: formatIssues(issues), logFields: { issues, ...names } }
}

function namesIn(body: unknown): { subscriptionId?: number; notificationId?: string; type?: string } {
  try {
    const { subscriptionId, notification } = Object(valueOfBody(body))
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

function answerWith(status: CallbackAnswer['status']): CallbackAnswer {
  // A 405 must name the allowed methods (RFC 9110 section 15.5.6).
  return { status, headers: status === 405 ? { allow: 'POST' } : {} }
}

/** Whether a request only tests that the route exists, as load balancers, monitors and browsers do. */
function isProbe(method: unknown): boolean {
  return ['GET', 'HEAD'].includes(String(method).toUpperCase())
}
