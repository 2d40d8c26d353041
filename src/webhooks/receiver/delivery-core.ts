/** What `handle` and the adapters share: who is let in, and what becomes of a body. Nothing here throws or rejects. */
import type { InvalidDeliveryError } from '../../errors.js'
import { InFlight } from '../../in-flight.js'
import { type SafeLogger, safeLogger } from '../../logger.js'
import { isBytes } from '../body.js'
import type { DeliveryOf, NotificationOf, PayloadSchemas } from '../delivery.js'
import { type DeliveryParser, safeParseDelivery } from '../delivery-parser.js'
import { invalidDelivery } from '../invalid-delivery.js'
import { authenticator } from './authentication.js'
import { type ReceivedBody, tooLarge } from './body-reader.js'
import { start } from './calls.js'
import { startDeadline } from './deadline.js'
import type { NotificationHandler } from './handlers.js'
import type { HeaderReader } from './headers.js'
import type { DeliveryReceiverOptions } from './options.js'

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

type Handler<Payloads extends PayloadSchemas> = NotificationHandler<NotificationOf<Payloads>, Payloads>

export interface DeliveryCore<Payloads extends PayloadSchemas> {
  readonly maxBodyBytes: number
  readonly logger: SafeLogger
  /** Resolves when no delivery is in flight. */
  drained(): Promise<void>
  /** Registers a handler for one type, or for all. A delivery that is being handled does not see it. */
  register(type: string | undefined, handler: Handler<Payloads>): void
  /** Logs why a request is refused, and returns the status for it. */
  refuse<Status extends keyof typeof refusals>(status: Status): Status
  /** Calls `read` for the body of a request that is not refused. Both callbacks are to be called once. */
  handle(
    method: unknown,
    headerOf: HeaderReader,
    read: (onBody: (received: ReceivedBody) => void) => void,
    onAnswer: OnAnswer,
  ): void
}

export function createDeliveryCore<Payloads extends PayloadSchemas>(
  options: DeliveryReceiverOptions<Payloads>,
): DeliveryCore<Payloads> {
  const {
    secrets,
    // Without a parser there are no payload schemas of the user's, and then this is its type.
    parser = { safeParse: safeParseDelivery } as Pick<DeliveryParser<Payloads>, 'safeParse'>,
    onInvalid,
    onError,
    ackTimeoutMs = 2_000,
    maxBodyBytes = 2 ** 20,
  } = options
  const logger = safeLogger(options.logger)
  const isAuthentic = secrets ? authenticator(secrets) : () => true
  const inFlight = new InFlight()
  let handlers: readonly { readonly type: string | undefined; readonly handler: Handler<Payloads> }[] = []

  const refuse: DeliveryCore<Payloads>['refuse'] = (status) => {
    logger.warn({ status, reason: refusals[status] }, 'Callback refused')
    return status
  }

  function notify(delivery: DeliveryOf<Payloads>, calls: InFlight): void {
    const { subscriptionId, notification } = delivery
    const context = { subscriptionId, delivery }
    // Read once: what a handler does to the notification must not make reporting its failure fail.
    const { id, type } = notification
    // A scan, not a lookup: types come from outside, and one may be called `__proto__`.
    for (const registered of handlers) {
      if (registered.type !== undefined && registered.type !== type) continue
      start(
        calls,
        () => registered.handler(notification, context),
        (err) =>
          report(
            calls,
            onError && (() => onError(err, notification, context)),
            { subscriptionId, id, type, err },
            'Notification handler failed',
            'onError failed',
          ),
      )
    }
  }

  function reportInvalid(error: InvalidDeliveryError, calls: InFlight): void {
    const { issues, message } = error
    const callback = onInvalid && (() => onInvalid(error))
    report(calls, callback, { issues }, message, 'onInvalid failed')
  }

  /** Tells the user's callback, or the log if there is none; the log also gets what the callback throws. */
  function report(
    calls: InFlight,
    callback: (() => unknown) | undefined,
    fields: object,
    message: string,
    callbackFailed: string,
  ): void {
    if (callback === undefined) logger.error(fields, message)
    else start(calls, callback, (err) => logger.error({ ...fields, err }, callbackFailed))
  }

  /** Answers when the handlers are done, or when they take too long. */
  function receive({ body, failure }: ReceivedBody, onAnswer: OnAnswer): void {
    const calls = new InFlight()
    let status: AnswerStatus = 204
    try {
      if (failure === tooLarge || isLarger(body, maxBodyBytes)) status = refuse(413)
      else if (failure) throw failure
      else {
        const { data, error } = parser.safeParse(body)
        if (error) reportInvalid(error, calls)
        else notify(data, calls)
      }
    } catch (thrown) {
      // Also of a parsed object whose getters throw, or a parser that was not made by createDeliveryParser.
      reportInvalid(invalidDelivery(body, thrown), calls)
    }
    let onOver = () => onAnswer(status)
    const stopWaiting = startDeadline(ackTimeoutMs, () => {
      onAnswer(status, new Promise((resolve) => (onOver = resolve)))
    })
    calls.whenOver(() => {
      stopWaiting()
      onOver()
      inFlight.end()
    })
  }

  return {
    maxBodyBytes,
    logger,
    refuse,
    drained: () => inFlight.drained(),
    register(type, handler) {
      handlers = [...handlers, { type, handler }]
    },
    handle(method, headerOf, read, onAnswer) {
      if (String(method).toUpperCase() !== 'POST') return onAnswer(refuse(405))
      if (!isAuthentic(headerOf)) return onAnswer(refuse(401))
      // In flight from here on: a body that is still arriving will have handlers.
      inFlight.begin()
      read((received) => receive(received, onAnswer))
    },
  }
}

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
function isLarger(body: unknown, maxBytes: number): boolean {
  if (typeof body !== 'string') return isBytes(body) && body.byteLength > maxBytes
  // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
  return body.length > maxBytes || (body.length * 3 > maxBytes && new Blob([body]).size > maxBytes)
}
