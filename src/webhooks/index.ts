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
export { type FastifyInstanceLike, type FastifyPluginOptions, toFastifyPlugin } from './adapters/fastify.js'
export { type LambdaAnswer, type LambdaEvent, toLambdaHandler } from './adapters/lambda.js'
export { toNodeHandler } from './adapters/node.js'
export type { CallbackServer, NodeRequest, NodeResponse } from './adapters/node-types.js'
export { toWebHandler, type WebHandlerOptions } from './adapters/web.js'
export type { CallbackAnswer } from './core.js'
export * from './documented-payloads.js'
export type { DeliveryContext, NotificationHandler } from './handlers.js'
export type { DeliveryReceiverOptions, RefusedCallback } from './options.js'
export {
  createDeliveryParser,
  type DeliveryParser,
  type DeliveryParserOptions,
  type DeliveryResult,
  parseDelivery,
  safeParseDelivery,
} from './parse.js'
export { type CallbackReceiver, type CallbackRequest, DeliveryReceiver } from './receiver.js'
export { type SampleDelivery, type SampleDeliveryOverrides, sampleDelivery } from './sample.js'
export {
  type Delivery,
  deliverySchema,
  type Notification,
  type NotificationFields,
  notificationSchema,
  type PayloadSchemas,
} from './schemas.js'
export { type Secrets, verifySecrets } from './secrets.js'
export type { SecretsSource } from './secrets-source.js'
