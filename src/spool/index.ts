/**
 * Deliveries kept on disk before their callbacks are answered. Needs the package `lmdb`.
 *
 * @module notification-subscriber/spool
 */
export {
  ConfigurationError,
  type Issue,
  NotificationError,
  SpoolError,
  type SpoolErrorReason,
} from '../errors.js'
export type { Logger } from '../logger.js'
export type { Delivery, PayloadSchemas } from '../webhooks/delivery/delivery.js'
export type { DeliveryParser } from '../webhooks/delivery/delivery-parser.js'
export { DeliverySpool } from './delivery-spool.js'
export type { DeliveryAttempt, DeliverySpoolOptions, StuckDelivery } from './spool-options.js'
export type { InvalidBody } from './spool-store.js'
