/**
 * Deliveries kept on disk before their callbacks are answered.
 *
 * @module notification-subscriber/spool
 */
export {
  ClosedError,
  ConfigurationError,
  InvalidDeliveryError,
  type Issue,
  NotificationError,
  SpoolError,
} from '../errors.js'
export type { Logger } from '../logger.js'
export type { Delivery, PayloadSchemas } from '../webhooks/schemas.js'
export type { DeadLetter } from './dead-letters.js'
export { DeliverySpool } from './delivery-spool.js'
export type { DeliveryAttempt, DeliverySpoolOptions, StuckDelivery } from './spool-options.js'
