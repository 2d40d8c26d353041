/** What `handle` and the adapters share: who is let in, and what becomes of a body. Nothing here throws or rejects. */

import type { InvalidDeliveryError } from '../../errors.js'
import { type Log, logOf } from '../../logger.js'
import { type Calls, callSafely } from '../../shared/call-safely.js'
import { inFlight } from '../../shared/in-flight.js'
import { isBytes } from '../delivery/body.js'
import type { DeliveryOf, NotificationOf, PayloadSchemas } from '../delivery/delivery.js'
import { type DeliveryParser, defaultParser } from '../delivery/delivery-parser.js'
import { thrownFailure } from '../delivery/failure.js'
import { invalidDelivery } from '../delivery/invalid-delivery.js'
import { startAckTimer } from './ack-timer.js'
import { authenticator } from './authentication.js'
import type { ReceivedBody } from './body-reader.js'
import type { NotificationHandler } from './handlers.js'
import type { HeaderReader } from './headers.js'
import type { DeliveryReceiverOptions } from './receiver-options.js'

/** The only statuses a callback is answered with. */
export type AnswerStatus = 204 | 401 | 405 | 413

/** What to answer a callback with. There is never a body. */
export interface CallbackAnswer {
  /** 204 for everything that comes from the service; 401, 405 or 413 for what does not. */
  readonly status: AnswerStatus
  /** `allow` with a 405, otherwise none. */
  readonly headers: Record<string, string>
}

/** Called once; `stillRunning` resolves when the handlers that the answer did not wait for are done. */
export type OnAnswer = (answer: CallbackAnswer, stillRunning?: Promise<void>) => void

const refusals = {
  401: 'a secret header is missing, wrong or there twice',
  405: 'the method is not POST',
  413: 'the body exceeds maxBodyBytes',
}

type Handler<Payloads extends PayloadSchemas> = NotificationHandler<NotificationOf<Payloads>, Payloads>

export interface DeliveryCore<Payloads extends PayloadSchemas> {
  readonly maxBodyBytes: number
  readonly log: Log
  /** Resolves when no delivery is in flight. */
  drained(): Promise<void>
  /** Registers a handler for one type, or for all. A delivery that is being handled does not see it. */
  register(type: string | undefined, handler: Handler<Payloads>): void
  /** Logs why a request is refused, and returns the answer to it. */
  refuse(status: keyof typeof refusals): CallbackAnswer
  /** Calls `read` for the body of a request that is not refused. Both callbacks are to be called once. */
  handle(
    method: unknown,
    headerOf: HeaderReader,
    read: (onBody: (received: ReceivedBody) => void) => void,
    onAnswer: OnAnswer,
  ): void
}

export const createDeliveryCore = <Payloads extends PayloadSchemas>(
  options: DeliveryReceiverOptions<Payloads>,
): DeliveryCore<Payloads> => {
  const {
    secrets,
    // Without a parser there are no payload schemas of the user's, and then this is its type.
    parser = defaultParser as Pick<DeliveryParser, 'safeParse'> as Pick<
      DeliveryParser<Payloads>,
      'safeParse'
    >,
    onInvalid = ({ issues, message }) => log('error', { issues }, message),
    onError,
    ackTimeoutMs = 2_000,
    maxBodyBytes = 2 ** 20,
  } = options
  const log = logOf(options.logger)
  const isAuthentic = secrets ? authenticator(secrets) : () => true
  const deliveries = inFlight()
  let handlers: readonly { readonly type: string | undefined; readonly handler: Handler<Payloads> }[] = []

  const refuse: DeliveryCore<Payloads>['refuse'] = (status) => {
    log('warn', { status, reason: refusals[status] }, 'Callback refused')
    return answerWith(status)
  }

  const notify = (delivery: DeliveryOf<Payloads>, calls: Calls): void => {
    const { subscriptionId, notification } = delivery
    const context = { subscriptionId, delivery }
    // Read once: what a handler does to the notification must not make reporting its failure fail.
    const { id, type } = notification
    const logFailure = (err: unknown, message: string) =>
      log('error', { subscriptionId, id, type, err }, message)
    // A scan, not a lookup: types come from outside, and one may be called `__proto__`.
    for (const registered of handlers) {
      if ((registered.type ?? type) !== type) continue
      callSafely(
        () => registered.handler(notification, context),
        (error) =>
          onError
            ? callSafely(
                () => onError(error, notification, context),
                (err) => logFailure(err, 'onError failed'),
                calls,
              )
            : logFailure(error, 'Handler failed'),
        calls,
      )
    }
  }

  const reportInvalid = (error: InvalidDeliveryError, calls: Calls): void => {
    callSafely(
      () => onInvalid(error),
      (err) => log('error', { issues: error.issues, err }, 'onInvalid failed'),
      calls,
    )
  }

  /** Answers when the handlers are done, or when they take too long. */
  const receive = ({ body, failure }: ReceivedBody, onAnswer: OnAnswer): void => {
    // One is this function itself: the delivery is not over before all handlers are called.
    let underWay = 1
    const calls: Calls = {
      begin() {
        underWay += 1
      },
      end() {
        underWay -= 1
        if (underWay > 0) return
        stopWaiting()
        onOver()
        deliveries.end()
      },
    }
    let answer = answerWith(204)
    try {
      // By its look and not its identity: an adapter may be of another copy of this package.
      if (failure?.issues.length === 0 || isLarger(body, maxBodyBytes)) answer = refuse(413)
      else if (failure) reportInvalid(invalidDelivery(body, failure), calls)
      else {
        const { data, error } = parser.safeParse(body)
        if (error) reportInvalid(error, calls)
        else notify(data, calls)
      }
    } catch (thrown) {
      // Also of a parsed object whose getters throw, or a parser that was not made by createDeliveryParser.
      reportInvalid(invalidDelivery(body, thrownFailure(thrown)), calls)
    }
    let onOver = () => onAnswer(answer)
    const stopWaiting = startAckTimer(ackTimeoutMs, () => {
      onAnswer(answer, new Promise((resolve) => (onOver = resolve)))
    })
    calls.end()
  }

  return {
    maxBodyBytes,
    log,
    refuse,
    drained: () => new Promise(deliveries.whenOver),
    register(type, handler) {
      handlers = [...handlers, { type, handler }]
    },
    handle(method, headerOf, read, onAnswer) {
      if (String(method).toUpperCase() !== 'POST') return onAnswer(refuse(405))
      if (!isAuthentic(headerOf)) return onAnswer(refuse(401))
      // In flight from here on: a body that is still arriving will have handlers.
      deliveries.begin()
      read((received) => receive(received, onAnswer))
    },
  }
}

const answerWith = (status: AnswerStatus): CallbackAnswer => ({
  status,
  // RFC 9110 section 15.5.6.
  headers: status === 405 ? { allow: 'POST' } : {},
})

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
const isLarger = (body: unknown, maxBytes: number): boolean =>
  typeof body === 'string'
    ? // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
      body.length > maxBytes || (body.length * 3 > maxBytes && new Blob([body]).size > maxBytes)
    : isBytes(body) && body.byteLength > maxBytes
