/**
 * The receiver alone, for an app that only receives callbacks. Loads no client code and no module of Node.js.
 *
 * @module notification-subscriber/webhooks
 */
export { ConfigurationError, InvalidDeliveryError, type Issue, NotificationError } from '../errors.js'
export type { Logger } from '../logger.js'
export {
  type DocumentedNotificationType,
  documentedNotificationTypes,
  type NotificationType,
  notificationTypes,
} from '../notification-types.js'
export type {
  Delivery,
  LowEnergyAgentOpenedPayload,
  Notification,
  PayloadSchemas,
} from './delivery/delivery.js'
export {
  createDeliveryParser,
  type DeliveryParser,
  type DeliveryParserOptions,
  type DeliveryResult,
  parseDelivery,
  safeParseDelivery,
} from './delivery/delivery-parser.js'
export { lowEnergyAgentOpenedPayloadSchema } from './delivery/payload-schemas.js'
export { deliverySchema, notificationSchema } from './delivery/schemas.js'
export type { CallbackAnswer } from './receiver/delivery-core.js'
export { type CallbackRequest, DeliveryReceiver } from './receiver/delivery-receiver.js'
export {
  type FastifyInstanceLike,
  type FastifyPluginOptions,
  type FastifyReplyLike,
  type FastifyRequestLike,
  toFastifyPlugin,
} from './receiver/fastify-plugin.js'
export type { DeliveryContext, NotificationHandler } from './receiver/handlers.js'
export { toNodeHandler } from './receiver/node-handler.js'
export type { NodeRequest, NodeResponse } from './receiver/node-messages.js'
export type { DeliveryReceiverOptions } from './receiver/receiver-options.js'
export type { RefusedCallback } from './receiver/refusal.js'
export { toWebHandler, type WebHandlerOptions } from './receiver/web-handler.js'
