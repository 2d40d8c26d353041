/**
 * Keeps a roster of users subscribed.
 *
 * @module notification-subscriber/keeper
 */
export { ConfigurationError, InvalidRequestError, type Issue, NotificationError } from '../errors.js'
export type { Logger } from '../logger.js'
export type { KeyValueStore } from '../stores/key-value-store.js'
export type { KeeperClient, Roster, SubscriptionKeeperOptions, SweepOptions } from './options.js'
export { SubscriptionKeeper } from './subscription-keeper.js'
export type * from './types.js'
