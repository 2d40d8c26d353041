/** What a handler gets: types that follow from the type it is registered for. */
import type * as z from 'zod'
import type { DocumentedNotificationType } from '../../notification-types.js'
import type { DeliveryOf, NotificationOf, NotificationWith, PayloadSchemas } from '../delivery/delivery.js'

/** What a handler learns besides the notification. */
export interface DeliveryContext<Payloads extends PayloadSchemas> {
  /** Identifier of the subscription that the notification belongs to. */
  readonly subscriptionId: number
  /** The whole body of the callback (interface.md section 2.3), unknown fields included. */
  readonly delivery: DeliveryOf<Payloads>
}

/** A function that gets notifications. It may be asynchronous: what it returns is awaited, and otherwise ignored. */
export type NotificationHandler<Notification, Payloads extends PayloadSchemas> = (
  notification: Notification,
  context: DeliveryContext<Payloads>,
) => unknown

/** Names that an editor can suggest for `notification.type`. */
export type SuggestedType<Payloads extends PayloadSchemas> =
  | DocumentedNotificationType
  | (keyof Payloads & string)

/**
 * The notification of a type that a handler is registered for: with its payload if that has a schema, with any
 * object if not. A type that is only known as `string` can be each of them.
 */
export type NotificationFor<Type extends string, Payloads extends PayloadSchemas> = string extends Type
  ? NotificationOf<Payloads>
  : Type extends keyof Payloads
    ? NotificationWith<Type, z.output<Payloads[Type]>>
    : Type extends 'lowEnergyAgentOpened'
      ? Extract<NotificationOf<Payloads>, { type: Type }>
      : NotificationWith<Type, Record<string, unknown>>
