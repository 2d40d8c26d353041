/** `notification-subscriber/webhooks`: for an app that receives callbacks. Loads no client code. */
export { ConfigurationError, InvalidDeliveryError, type Issue, NotificationError } from '../errors.js'
export {
  type DocumentedNotificationType,
  documentedNotificationTypes,
  type NotificationType,
  notificationTypes,
} from './catalogue.js'
export type {
  Delivery,
  DeliveryOf,
  LowEnergyAgentOpenedNotification,
  LowEnergyAgentOpenedPayload,
  Notification,
  NotificationOf,
  NotificationWith,
  OtherNotification,
  PayloadSchemas,
  UndocumentedNotificationType,
} from './delivery.js'
export {
  createDeliveryParser,
  type DeliveryParser,
  type DeliveryParserOptions,
  type DeliveryResult,
  parseDelivery,
  safeParseDelivery,
} from './delivery-parser.js'
export { deliverySchema, lowEnergyAgentOpenedPayloadSchema, notificationSchema } from './schemas.js'
