/** Handlers: what they get, by the type they are registered for, and whether that type is ever delivered. */
import {
  type DocumentedNotificationType,
  documentedNotificationTypes,
  notificationTypes,
} from '../notification-types.js'
import { nearestName } from '../shared/text.js'
import type { Delivery, NoPayloadSchemas, Notification, PayloadSchemas } from './schemas.js'

/** The second argument of a handler. */
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

/** What is known of the type that a handler is registered for. */
export type HandlerType =
  | { readonly kind: 'documented' }
  /** A type to subscribe to: `delivered` are the types of its notifications. */
  | { readonly kind: 'subscribable'; readonly delivered: readonly string[] }
  /** Nearly the name of a documented type, and probably misspelt. */
  | { readonly kind: 'misspelt'; readonly nearest: string }
  /** May still be delivered: the documentation is not complete. */
  | { readonly kind: 'undocumented' }

export function classifyHandlerType(type: string): HandlerType {
  const documented: readonly string[] = Object.values(documentedNotificationTypes).flat()
  if (documented.includes(type)) return { kind: 'documented' }
  const subscribable = notificationTypes.find((name) => name === type)
  if (subscribable) return { kind: 'subscribable', delivered: documentedNotificationTypes[subscribable] }
  const nearest = nearestName(type, documented)
  return nearest === undefined ? { kind: 'undocumented' } : { kind: 'misspelt', nearest }
}
