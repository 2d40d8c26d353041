/** What a handler gets: types that follow from the type it is registered for. */
import type { DocumentedNotificationType } from '../../notification-types.js'
import type { Delivery, NoPayloadSchemas, Notification, PayloadSchemas } from '../delivery/delivery.js'

/** What a handler learns besides the notification. */
export interface DeliveryContext<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /** Identifier of the subscription that the notification belongs to. */
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

/**
 * A function that gets notifications of a type, or of every type. The function may be asynchronous: what it returns is
 * awaited, and otherwise ignored.
 */
export type NotificationHandler<
  Type extends string = string,
  Payloads extends PayloadSchemas = NoPayloadSchemas,
> = (notification: Notification<Type, Payloads>, context: DeliveryContext<Payloads>) => unknown

/** Names that an editor can suggest for `notification.type`. */
export type SuggestedType<Payloads extends PayloadSchemas> =
  | DocumentedNotificationType
  | (keyof Payloads & string)
