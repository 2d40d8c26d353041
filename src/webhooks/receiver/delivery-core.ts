/** What `handle` and the adapters share: who is let in, and what becomes of a body. Nothing here throws or rejects. */
import type { InvalidDeliveryError } from '../../errors.js'
import { InFlight } from '../../in-flight.js'
import { type SafeLogger, safeLogger } from '../../logger.js'
import { messageOf } from '../../text.js'
import { isBytes } from '../body.js'
import type { DeliveryOf, NotificationOf, PayloadSchemas } from '../delivery.js'
import { type DeliveryParser, safeParseDelivery } from '../delivery-parser.js'
import { type Failure, failure } from '../failure.js'
import { invalidDelivery } from '../invalid-delivery.js'
import { authenticator } from './authentication.js'
import { Calls } from './calls.js'
import { startDeadline } from './deadline.js'
import { type DeliveryContext, Handlers, type NotificationHandler } from './handlers.js'
import type { HeaderReader } from './headers.js'
import type { DeliveryReceiverOptions } from './options.js'
import type { ReadBody } from './read-body.js'

/** The only statuses a callback is answered with. */
export type AnswerStatus = 204 | 401 | 405 | 413

/** The headers of an answer. */
export function answerHeaders(status: AnswerStatus): Record<string, string> {
  // RFC 9110 section 15.5.6.
  return status === 405 ? { allow: 'POST' } : {}
}

/** Called once; `stillRunning` resolves when the handlers that the answer did not wait for are done. */
export type OnAnswer = (status: AnswerStatus, stillRunning?: Promise<void>) => void

const refusals = {
  401: 'a secret header is missing, wrong or there more than once',
  405: 'the method is not POST',
  413: 'the body is larger than maxBodyBytes',
}

type Parser<Payloads extends PayloadSchemas> = Pick<DeliveryParser<Payloads>, 'safeParse'>

type Handler<Payloads extends PayloadSchemas> = NotificationHandler<NotificationOf<Payloads>, Payloads>

export class DeliveryCore<Payloads extends PayloadSchemas> {
  readonly maxBodyBytes: number
  readonly handlers = new Handlers<Handler<Payloads>>()
  readonly inFlight = new InFlight()
  readonly logger: SafeLogger
  readonly #isAuthentic: (headerOf: HeaderReader) => boolean
  readonly #parser: Parser<Payloads>
  readonly #ackTimeoutMs: number
  readonly #onInvalid: DeliveryReceiverOptions<Payloads>['onInvalid']
  readonly #onError: DeliveryReceiverOptions<Payloads>['onError']

  constructor(options: DeliveryReceiverOptions<Payloads>) {
    this.maxBodyBytes = options.maxBodyBytes ?? 2 ** 20
    this.logger = safeLogger(options.logger)
    this.#isAuthentic = options.secrets ? authenticator(options.secrets) : () => true
    // Without a parser there are no payload schemas of the user's, and then this is its type.
    this.#parser = options.parser ?? ({ safeParse: safeParseDelivery } as Parser<Payloads>)
    this.#ackTimeoutMs = options.ackTimeoutMs ?? 2_000
    this.#onInvalid = options.onInvalid
    this.#onError = options.onError
  }

  /** The status to refuse a request with, known before its body is read. */
  refusalOf(method: unknown, headerOf: HeaderReader): AnswerStatus | undefined {
    if (typeof method !== 'string' || method.toUpperCase() !== 'POST') return this.refuse(405)
    return this.#isAuthentic(headerOf) ? undefined : this.refuse(401)
  }

  /** Takes a body in, in any form. */
  receive(body: unknown, onAnswer: OnAnswer): void {
    if (isLarger(body, this.maxBodyBytes)) {
      onAnswer(this.refuse(413))
      return
    }
    const calls = new Calls()
    this.#deliver(body, calls)
    this.#answerAfter(calls, onAnswer)
  }

  /** Takes in what was read of a body. */
  receiveRead(read: ReadBody, onAnswer: OnAnswer): void {
    if (read === 'too large') onAnswer(this.refuse(413))
    else if (read.failure) this.receiveUnusable(read.failure, read.bytes, onAnswer)
    else this.receive(read.bytes, onAnswer)
  }

  /** Takes in a body that could not be read. */
  receiveUnusable(problem: Failure, body: unknown, onAnswer: OnAnswer): void {
    const calls = new Calls()
    this.#reportInvalid(invalidDelivery(body, problem), calls)
    this.#answerAfter(calls, onAnswer)
  }

  /** Logs why a request is refused, and returns the status for it. */
  refuse<Status extends keyof typeof refusals>(status: Status): Status {
    this.logger.warn({ status, reason: refusals[status] }, 'Callback refused')
    return status
  }

  /** Answers when the calls are over, or when they take too long. */
  #answerAfter(calls: Calls, onAnswer: OnAnswer): void {
    if (calls.areOver) {
      onAnswer(204)
      return
    }
    let onOver = () => onAnswer(204)
    const stopWaiting = startDeadline(this.#ackTimeoutMs, () => {
      onAnswer(204, new Promise((resolve) => (onOver = resolve)))
    })
    this.inFlight.begin()
    calls.whenOver(() => {
      stopWaiting()
      onOver()
      this.inFlight.end()
    })
  }

  #deliver(body: unknown, calls: Calls): void {
    try {
      const { data, error } = this.#parser.safeParse(body)
      if (error) this.#reportInvalid(error, calls)
      else this.#notify(data, calls)
    } catch (cause) {
      // A parsed object whose getters throw, or a parser that was not made by createDeliveryParser.
      const problem = failure(`the body cannot be read (${messageOf(cause)})`, cause)
      this.#reportInvalid(invalidDelivery(body, problem), calls)
    }
  }

  #notify(delivery: DeliveryOf<Payloads>, calls: Calls): void {
    const { subscriptionId, notification } = delivery
    const context = { subscriptionId, delivery }
    // Read once: what a handler does to the notification must not make reporting its failure fail.
    const { id, type } = notification
    this.handlers.forEach(type, (handler) => {
      calls.start(
        () => handler(notification, context),
        (error) => this.#reportError(error, { id, type }, notification, context, calls),
      )
    })
  }

  #reportInvalid(error: InvalidDeliveryError, calls: Calls): void {
    const { issues } = error
    const onInvalid = this.#onInvalid
    if (onInvalid === undefined) {
      this.logger.error({ issues }, error.message)
    } else {
      calls.start(
        () => onInvalid(error),
        (err) => this.logger.error({ err, issues }, 'onInvalid failed for a body that is no delivery'),
      )
    }
  }

  #reportError(
    error: unknown,
    named: { id: string; type: string },
    notification: NotificationOf<Payloads>,
    context: DeliveryContext<Payloads>,
    calls: Calls,
  ): void {
    const fields = { subscriptionId: context.subscriptionId, ...named }
    const onError = this.#onError
    if (onError === undefined) {
      this.logger.error({ ...fields, err: error }, 'Notification handler failed')
    } else {
      calls.start(
        () => onError(error, notification, context),
        (err) =>
          this.logger.error({ ...fields, err }, 'onError failed for the failure of a notification handler'),
      )
    }
  }
}

const utf8 = new TextEncoder()

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
function isLarger(body: unknown, maxBytes: number): boolean {
  if (typeof body === 'string') {
    // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
    if (body.length > maxBytes || body.length * 3 <= maxBytes) return body.length > maxBytes
    return utf8.encode(body).byteLength > maxBytes
  }
  try {
    return isBytes(body) && body.byteLength > maxBytes
  } catch {
    // An object that cannot be looked at: parsing it will tell.
    return false
  }
}
