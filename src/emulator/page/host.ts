/** The interface of an emulator for the page. */
import type { Activity, RecordedCallback } from '../activity.js'
import type { CallbackResult } from '../callbacks.js'
import type { FaultPlan } from '../faults.js'
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
    revokeTokens(): void
  }
  readonly activity: Activity
  readonly faults: FaultPlan
  /** Sends a callback once more, byte for byte. */
  resend(callback: RecordedCallback): Promise<CallbackResult>
  readonly allowInsecureLoopback: boolean
  /** Environment variables that the page shows in addition to the emulator's, or instead of them. */
  readonly environment: Readonly<Record<string, string>>
}
