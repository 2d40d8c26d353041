/** What creating a subscription gives. */
import type { SubscriptionConflictError } from '../errors.js'

/** A subscription that now exists (docs/service.md, Resources). */
export interface CreatedSubscription {
  /** The service's identifier; needed to unsubscribe and to update, so keep it. */
  readonly subscriptionId: number
}

/** Either outcome of `tryCreateSubscription`: comparing `created` tells which. */
export type CreateSubscriptionResult =
  | {
      /** A subscription now exists. */
      readonly created: true
      /** The service's identifier; needed to unsubscribe and to update, so keep it. */
      readonly subscriptionId: number
    }
  | {
      /** Nothing was created or deleted. */
      readonly created: false
      /** The error that `createSubscription` would have thrown. */
      readonly conflict: SubscriptionConflictError
    }
