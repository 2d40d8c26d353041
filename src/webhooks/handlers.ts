/** The types of handlers, and the warning about a handler whose notification type is not documented. */
import type { Log } from '../logger.js'
import { documentedNotificationTypes, notificationTypes } from '../notification-types.js'
import { nearestName } from '../shared/mistakes.js'
import type { Delivery, NoPayloadSchemas, Notification, PayloadSchemas } from './schemas.js'

/** The second argument of a handler. */
export interface DeliveryContext<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  readonly subscriptionId: number
  /** The whole body of the callback (docs/service.md, Resources), unknown fields included. */
  readonly delivery: Delivery<Payloads>
  /**
   * The value of a header of the callback, by its name in any case; `undefined` if the header was not sent, or more than
   * once. The parameters and headers that a subscription was created with come back as headers (docs/service.md,
   * Delivery).
   *
   * @example
   * ```ts
   * receiver.onAny(({ id }, { header }) => console.log(id, 'is for tenant', header('x-tenant')))
   * ```
   */
  readonly header: (name: string) => string | undefined
}

/** Gets notifications of one type, or of every type. May be asynchronous: its result is awaited and ignored. */
export type NotificationHandler<
  Type extends string = string,
  Payloads extends PayloadSchemas = NoPayloadSchemas,
> = (notification: Notification<Type, Payloads>, context: DeliveryContext<Payloads>) => unknown

/** Logs that a handler is registered for a type that is not documented: perhaps misspelt, or the type of a subscription. */
export function logUndocumentedType(type: string, log: Log): void {
  const documented: readonly string[] = Object.values(documentedNotificationTypes).flat()
  if (documented.includes(type)) return
  const subscribable = notificationTypes.find((name) => name === type)
  const fields = subscribable
    ? { delivered: documentedNotificationTypes[subscribable] }
    : { nearest: nearestName(type, documented) }
  const message = `A handler is registered for a type that is not documented as delivered. ${subscribable ? '`delivered` is what a subscription to it brings.' : '`nearest` is the documented type with the most similar name.'}`
  log('warn', { event: 'handler.type-undocumented', type, ...fields }, message)
}
