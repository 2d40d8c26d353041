/**
 * The client and the receiver, with their errors and schemas. Loads undici at the first request only.
 *
 * @module notification-subscriber
 */
export type {
  Auth,
  BasicAuth,
  ClientAuthentication,
  ClientCredentialsAuth,
  CredentialsEncoding,
  ProvidedTokenAuth,
  TokenRequest,
} from './auth/credentials.js'
export { NotificationClient } from './client/notification-client.js'
export type { CallOptions, NotificationClientOptions } from './client/options.js'
export * from './errors.js'
export type { DispatcherLike, FetchLike, FetchResponseLike } from './http/fetch.js'
export type { RetryOptions } from './http/retry.js'
export type { ResponseSummary } from './http/send.js'
export type { Logger } from './logger.js'
export type { Route, Routes } from './shared/routes.js'
export type { KeyValueStore } from './stores/key-value-store.js'
export type { CreatedSubscription, CreateSubscriptionResult } from './subscriptions/endpoints.js'
export {
  type AssociatedValues,
  type CreateSubscriptionInput,
  createSubscriptionInputSchema,
  type UpdateSubscriptionParametersInput,
  updateSubscriptionParametersInputSchema,
} from './subscriptions/schemas.js'
export * from './webhooks/index.js'
