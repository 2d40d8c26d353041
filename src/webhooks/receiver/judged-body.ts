/** What is in a callback's body: a delivery for the handlers, or an error for `onInvalid`. */
import type { InvalidDeliveryError } from '../../errors.js'
import type { Delivery, Notification, PayloadSchemas } from '../delivery/delivery.js'
import type { DeliveryParser } from '../delivery/delivery-parser.js'
import { Failure } from '../delivery/failure.js'
import { invalidDelivery } from '../delivery/invalid-delivery.js'
import type { BodyRead } from './body-read.js'
import type { DeliveryContext } from './handlers.js'
import type { RequestHeaders } from './request-headers.js'

/** The part of a parser that a receiver uses. */
export type BodyParser<Payloads extends PayloadSchemas> = Pick<DeliveryParser<Payloads>, 'safeParse'>

/** A delivery, and all that its handlers and the lines about it need. */
export interface JudgedDelivery<Payloads extends PayloadSchemas> {
  readonly kind: 'delivery'
  readonly notification: Notification<string, Payloads>
  readonly context: DeliveryContext<Payloads>
  /** Type and log fields were read before a handler could change the notification. */
  readonly type: string
  readonly logFields: object
}

/** A body that is no delivery. */
export interface JudgedInvalid {
  readonly kind: 'invalid'
  readonly error: InvalidDeliveryError
  readonly logFields: object
}

export type JudgedBody<Payloads extends PayloadSchemas> = JudgedDelivery<Payloads> | JudgedInvalid

/** Never throws, whatever the body and the parser are. */
export function judgeBody<Payloads extends PayloadSchemas>(
  read: Exclude<BodyRead, { kind: 'too-large' }>,
  headers: RequestHeaders,
  parser: BodyParser<Payloads>,
): JudgedBody<Payloads> {
  if (read.kind === 'unreadable') return invalid(invalidDelivery(read.body, read))
  try {
    const { data, error } = parser.safeParse(read.body)
    return error === undefined ? deliveryFor(data, headers) : invalid(error)
  } catch (thrown) {
    // A parsed object's getters may throw, and so may a parser that was not made by `createDeliveryParser`.
    return invalid(invalidDelivery(read.body, Failure.of(thrown)))
  }
}

function deliveryFor<Payloads extends PayloadSchemas>(
  delivery: Delivery<Payloads>,
  headers: RequestHeaders,
): JudgedDelivery<Payloads> {
  const { subscriptionId, notification } = delivery
  const { id, type } = notification
  return {
    kind: 'delivery',
    notification,
    context: { subscriptionId, delivery, header: (name) => headers.get(name) },
    type,
    logFields: { subscriptionId, id, type },
  }
}

function invalid(error: InvalidDeliveryError): JudgedInvalid {
  return { kind: 'invalid', error, logFields: { issues: error.issues } }
}
