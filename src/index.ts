/**
 * The client, the keeper and the receiver, with their errors and schemas. Loads undici at the first request only.
 *
 * @module notification-subscriber
 */
export type { Auth, BasicAuth, ProvidedTokenAuth } from './auth/auth.js'
export type { CredentialsEncoding } from './auth/basic-credentials.js'
export type { TokenCache } from './auth/shared-token-cache.js'
export type { ClientCredentialsAuth } from './auth/token-request.js'
export type { CallOptions } from './client/call-options.js'
export type { NotificationClientOptions } from './client/client-options.js'
export { NotificationClient } from './client/notification-client.js'
export * from './errors.js'
export type { FetchLike, FetchResponseLike } from './http/fetch-transport.js'
export type { RetryOptions } from './http/retry.js'
export type { DispatcherLike } from './http/undici-transport.js'
export type {
  KeeperClient,
  KeeperGap,
  KeeperProblem,
  KeeperProblemCode,
  KeeperStatus,
  KeptSubscription,
  Roster,
  RotationReport,
  SubscriptionKeeperOptions,
  SweepOptions,
  SweepProgress,
  SweepReport,
} from './keeper/keeper-types.js'
export { SubscriptionKeeper } from './keeper/subscription-keeper.js'
export type { Logger } from './logger.js'
export type { KeyValueStore } from './stores/key-value-store.js'
export type { AssociatedValues } from './subscriptions/associated-values.js'
export { type CreateSubscriptionInput, createSubscriptionInputSchema } from './subscriptions/create-input.js'
export type { CreatedSubscription, CreateSubscriptionResult } from './subscriptions/create-result.js'
export type { Route, Routes } from './subscriptions/requests.js'
export {
  type UpdateSubscriptionParametersInput,
  updateSubscriptionParametersInputSchema,
} from './subscriptions/update-input.js'
export * from './webhooks/index.js'
