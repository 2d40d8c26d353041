/** How a receiver answers a callback: authenticate, read, parse, call the handlers. */
import type { InvalidDeliveryError, Issue } from '../errors.js'
import { callLogged, consoleLogOf, type Log, logOf, sparseConsoleLogOf } from '../logger.js'
import { testDelivery } from '../notification-types.js'
import { InFlight } from '../shared/in-flight.js'
import { isUnauthorized, isWrongMethod } from '../shared/statuses.js'
import { excerpt } from '../shared/text.js'
import { channelFor, traced } from '../shared/tracing.js'
import { formatIssues } from '../shared/validation.js'
import { settlesWithin } from '../shared/waits.js'
import { contentOf, errorOf, isLarger, type ReadBody, routeAdvice } from './body.js'
import { Connections } from './closing.js'
import { logUndocumentedType, type NotificationHandler } from './handlers.js'
import { headerOf } from './headers.js'
import { type DeliveryReceiverOptions, defaults, type RefusedCallback, routeError } from './options.js'
import { deliveryReader, logFieldsOf } from './parse.js'
import type { Delivery, NoPayloadSchemas, PayloadSchemas } from './schemas.js'
import type { Authenticator } from './secrets.js'
import { authenticatorOf } from './secrets-source.js'

/** The answer to a callback; never with a body. */
export interface CallbackAnswer {
  /** 204 for every callback of the service; 401, 405 or 413 for a request that cannot come from the service. */
  readonly status: 204 | 401 | 405 | 413
  /** The headers of the answer: `allow` with a 405, otherwise none. */
  readonly headers: Record<string, string>
}

/** By `Symbol.for`, because an adapter may come from another loaded copy of this package. */
export const receiverCore = Symbol.for('notification-subscriber')

/** @throws `ConfigurationError` for what is no receiver; callers in JavaScript may pass anything */
export function coreOf(receiver: object): ReceiverCore {
  const core = Object(receiver)[receiverCore]
  if (core === undefined) throw routeError('the first argument must be a DeliveryReceiver')
  return core
}

interface Received {
  readonly answer: CallbackAnswer
  /** The handlers that still run after the answer. */
  readonly stillRunning?: Promise<void> | undefined
}

/** The ids and the type of a body as far as they can be read, for log lines. */
type DeliveryFields = Partial<ReturnType<typeof logFieldsOf>>

/** If a timer fires later than this, something blocked the process. */
const timerLatenessMs = 50

const blocked =
  'Answered too late, because something blocked the process, probably a handler or `secrets`: see "Work that takes long" in docs/receiver.md'

const receiveChannel = channelFor('receive')

/** What subscribers of the tracing channel get, as soon as it is known. */
interface ReceiveContext {
  type?: string | undefined
  subscriptionId?: number | undefined
  status?: number
}

/** What adapters use of a receiver. */
export class ReceiverCore<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  readonly maxBodyBytes: number
  readonly log: Log
  readonly deliveries = new InFlight()
  readonly connections = new Connections()
  readonly #options: DeliveryReceiverOptions<Payloads>
  readonly #authenticate: Authenticator
  readonly #read: (value: unknown, body: unknown) => Delivery<Payloads>
  readonly #logLoss: Log
  readonly #logSparsely: Log
  #handlers: readonly {
    /** `undefined` for all types. */
    readonly type: string | undefined
    readonly handler: NotificationHandler<string, Payloads>
  }[] = []
  #hasWarnedOfParser = false

  constructor(options: DeliveryReceiverOptions<Payloads>) {
    const { secrets, payloads = {} as Payloads, maxBodyBytes = defaults.maxBodyBytes, logger } = options
    this.#options = { ...options }
    this.maxBodyBytes = maxBodyBytes
    this.log = logOf(logger)
    this.#logLoss = consoleLogOf(logger)
    this.#logSparsely = sparseConsoleLogOf(logger)
    this.#authenticate = authenticatorOf(secrets, this.#logLoss, this.#logSparsely)
    this.#read = deliveryReader(payloads)
  }

  addHandler(type: string | undefined, handler: NotificationHandler<string, Payloads>): void {
    const isKnown =
      type === undefined ||
      Object.hasOwn(this.#options.payloads ?? {}, type) ||
      this.#handlers.some((registered) => registered.type === type)
    if (!isKnown) logUndocumentedType(type, this.#logLoss)
    // Copy-on-write: a delivery in flight keeps the handlers that it began with.
    this.#handlers = [...this.#handlers, { type, handler }]
  }

  /** Logs once that a parser ran before the receiver: the parser itself answers bodies that it cannot read. */
  warnOfParser(): void {
    if (this.#hasWarnedOfParser) return
    this.#hasWarnedOfParser = true
    const message = 'A body parser runs before the receiver, and answers what it cannot read with an error'
    this.#logLoss('warn', { event: 'callback.parsed-before' }, `${message}: ${routeAdvice}`)
  }

  /** Never rejects. @param readBody - called only if authenticated, before anything is awaited */
  receive(
    method: unknown,
    headers: unknown,
    readBody: () => ReadBody | Promise<ReadBody>,
  ): Promise<Received> {
    const run = async (context: ReceiveContext = {}) => {
      const arrivedSince = performance.now()
      const isPost = String(method).toUpperCase() === 'POST'
      const refused = isPost ? this.#authenticate(headers) : wrongMethod(method)
      const received = refused
        ? { answer: this.#refuse(refused, method) }
        : await this.#process(context, headers, readBody, performance.now() - arrivedSince)
      context.status = received.answer.status
      return received
    }
    return traced(receiveChannel, () => ({}), run)
  }

  /** Reports a refusal. Does not wait for `onRefused`: the answer must not depend on it. */
  #refuse(refused: RefusedCallback, method?: unknown): CallbackAnswer {
    const { status } = refused
    const { onRefused } = this.#options
    // Load balancers, monitors and browsers test that the route exists.
    if (['GET', 'HEAD'].includes(String(method).toUpperCase())) {
      this.log('debug', { event: 'callback.probed', method }, 'Callback route probed')
      return answerWith(status)
    }
    const log = onRefused ? this.log : this.#logSparsely
    const advice = isUnauthorized(status) ? ': see "401 on my route" in docs/troubleshooting.md' : ''
    log('warn', { event: 'callback.refused', ...refused }, `Callback refused${advice}`)
    const failure = { event: 'on-refused.failed', ...refused }
    void callLogged(this.#logSparsely, failure, 'onRefused failed', () => onRefused?.(refused))
    return answerWith(status)
  }

  /** @param authenticationMs - how long the function `secrets` took */
  async #process(
    context: ReceiveContext,
    headers: unknown,
    readBody: () => ReadBody | Promise<ReadBody>,
    authenticationMs: number,
  ): Promise<Received> {
    // In flight from here on, so that `drain` also waits for a delivery whose body is still arriving.
    this.deliveries.begin()
    const read = await readUpTo(this.maxBodyBytes, readBody)
    // The sender's own time for the body does not count.
    const startedSince = performance.now() - authenticationMs
    if (read === undefined) {
      this.deliveries.end()
      const reason = `the body is larger than ${this.maxBodyBytes} bytes`
      return { answer: this.#refuse({ status: 413, reason }) }
    }
    const { fields, handling } = this.#handle(read, headers)
    context.type = fields.type
    context.subscriptionId = fields.subscriptionId
    let isDone = false
    const done = handling.then(() => {
      isDone = true
      this.deliveries.end()
    })
    // Most handlers are done within ten microtasks. A timer for each delivery costs 8 % of the throughput (over HTTP), and
    // one timer for all would never fire on Workers, where a timer ends with the request that set it.
    for (let step = 0; step < 10 && !isDone; step += 1) await undefined
    const { ackTimeoutMs = defaults.ackTimeoutMs } = this.#options
    if (!isDone) await settlesWithin(ackTimeoutMs, done)
    const durationMs = Math.round(performance.now() - startedSince)
    const isBlocked = durationMs > ackTimeoutMs + timerLatenessMs
    if (isBlocked || !isDone) {
      const slow = { event: 'handler.slow', ...fields, ackTimeoutMs, durationMs }
      // Also without a logger, because the service may count a late answer as a failed callback.
      const log = isBlocked ? this.#logSparsely : this.log
      log('warn', slow, isBlocked ? blocked : 'Answered before the handlers were done; they continue')
    }
    return { answer: answerWith(204), stillRunning: isDone ? undefined : done }
  }

  /** Starts the handlers, or `onInvalid` for a body that is no delivery. */
  #handle(
    { body, failure }: Exclude<ReadBody, undefined>,
    headers: unknown,
  ): { readonly fields: DeliveryFields; readonly handling: Promise<void> } {
    let value: unknown
    try {
      value = contentOf(body, headers)
      const delivery = this.#read(value, body)
      // Read first, because a handler may change the notification.
      const fields = logFieldsOf(delivery)
      return { fields, handling: this.#runHandlers(delivery, fields, headers) }
    } catch (thrown) {
      const error = failure ?? errorOf(body, thrown)
      const readable = readableFieldsOf(value)
      const fields = { issues: this.#shownIssues(error, readable.type), ...readable }
      return { fields, handling: this.#reportInvalid(error, fields) }
    }
  }

  async #runHandlers(
    delivery: Delivery<Payloads>,
    fields: ReturnType<typeof logFieldsOf>,
    headers: unknown,
  ): Promise<void> {
    const { subscriptionId, type } = fields
    this.log('debug', { event: 'delivery.received', ...fields }, 'Delivery received')
    if (type === testDelivery.type && subscriptionId === testDelivery.subscriptionId) return
    const context = { subscriptionId, delivery, header: (name: string) => headerOf(headers, name) }
    // A scan, not a lookup: types come from outside, and one may be called `__proto__`.
    const handlers = this.#handlers.filter((registered) => (registered.type ?? type) === type)
    // All handlers run at the same time, and no call rejects.
    const calls = handlers.map(({ handler }) => this.#call(handler, fields, delivery.notification, context))
    for (const call of calls) await call
  }

  async #call(
    handler: NotificationHandler<string, Payloads>,
    fields: ReturnType<typeof logFieldsOf>,
    ...args: Parameters<NotificationHandler<string, Payloads>>
  ): Promise<void> {
    try {
      await handler(...args)
    } catch (error) {
      const { onError } = this.#options
      const log = onError ? this.log : this.#logLoss
      log('error', { event: 'handler.failed', ...fields, err: error }, 'Handler failed')
      const failure = { event: 'on-error.failed', ...fields }
      await callLogged(this.#logLoss, failure, 'onError failed', () => onError?.(error, ...args))
    }
  }

  async #reportInvalid(
    error: InvalidDeliveryError,
    fields: { readonly issues: readonly Issue[] },
  ): Promise<void> {
    const { onInvalid } = this.#options
    const log = onInvalid ? this.log : this.#logLoss
    const loss = onInvalid ? '' : '. It is lost: give the receiver onInvalid to keep the body'
    const reason = formatIssues(fields.issues)
    log('error', { event: 'delivery.invalid', reason, ...fields }, `Not a notification delivery${loss}`)
    const failure = { event: 'on-invalid.failed', ...fields }
    await callLogged(this.#logLoss, failure, 'onInvalid failed', () => onInvalid?.(error))
  }

  /** A schema of the user's may quote the payload: in its words, and in its paths, which hold the keys of a record. */
  #shownIssues({ issues }: InvalidDeliveryError, type: string | undefined): readonly Issue[] {
    if (!Object.hasOwn(this.#options.payloads ?? {}, type ?? '')) return issues
    return issues.map((issue) =>
      issue.path[1] === 'payload'
        ? { path: issue.path.slice(0, 2), message: 'is refused by its schema in `payloads`' }
        : issue,
    )
  }
}

/** What was read of a body; `undefined` if it is too large. */
async function readUpTo(maxBytes: number, readBody: () => ReadBody | Promise<ReadBody>): Promise<ReadBody> {
  try {
    const read = await readBody()
    // A body that a parser has read was not limited yet.
    return read === undefined || isLarger(read.body, maxBytes) ? undefined : read
  } catch (thrown) {
    return { body: undefined, failure: errorOf(undefined, thrown) }
  }
}

/** The readable ids and type of a JSON value that is no delivery. */
function readableFieldsOf(value: unknown): DeliveryFields {
  try {
    const { subscriptionId, notification } = Object(value)
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

function wrongMethod(method: unknown): RefusedCallback {
  const missing = 'the request has no method: pass a Request, or { method, headers, body }'
  return { status: 405, reason: method === undefined ? missing : 'the method is not POST' }
}

function answerWith(status: CallbackAnswer['status']): CallbackAnswer {
  // A 405 must name the allowed methods (RFC 9110 section 15.5.6).
  return { status, headers: isWrongMethod(status) ? { allow: 'POST' } : {} }
}
