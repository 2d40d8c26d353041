/** What the page needs of an emulator: the page knows nothing else of it. */
import type { Activity } from '../activity.js'
import type { CallbackResult } from '../callbacks.js'
import type { PlannedFault } from '../faults.js'
import type { EmulatedNotification } from '../notification.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'

export interface PageHost {
  readonly emulator: {
    readonly baseUrl: string
    readonly authUrl: string
    readonly domain: string
    readonly clientId: string
    readonly clientSecret: string
    /** Certificate in PEM of the authority to trust. */
    readonly ca: string
    /** The active subscriptions, the oldest first. */
    readonly subscriptions: readonly SubscriptionRecord[]
    notify(notification: EmulatedNotification): Promise<readonly CallbackResult[]>
    endSubscription(subscriptionId: number): boolean
    clearFaults(): void
    revokeTokens(): void
  }
  readonly allowInsecureLoopback: boolean
  readonly activity: Activity
  /** Checks its arguments, which come from the page as they are. */
  injectFault(operation: unknown, fault: unknown, options: object): void
  /** The faults that are still to happen, in the order in which they were injected. */
  plannedFaults(): readonly PlannedFault[]
  /** Environment variables that the page shows besides those of the emulator, or in place of them. */
  readonly environment: Readonly<Record<string, string>>
}
