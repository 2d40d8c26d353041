import type { Activity } from '../activity.js'
import type { CallbackResult, Callbacks } from '../callbacks.js'
import type { FaultPlan } from '../faults.js'
import type { EmulatedNotification } from '../notification.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'

/** What the page's server uses of an emulator. */
export interface PageHost {
  readonly emulator: Readonly<
    Record<'baseUrl' | 'authUrl' | 'domain' | 'clientId' | 'clientSecret' | 'ca', string>
  > & {
    readonly subscriptions: readonly SubscriptionRecord[]
    notify(notification: EmulatedNotification): Promise<readonly CallbackResult[]>
    endSubscription(subscriptionId: number): boolean
    revokeTokens(): void
  }
  readonly activity: Activity
  readonly callbacks: Callbacks
  readonly faults: FaultPlan
  /** Environment variables that the page shows in addition to the emulator's, or instead of them. */
  readonly environment: Readonly<Record<string, string>>
}
