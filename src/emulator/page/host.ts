import type { Activity } from '../activity.js'
import type { CallbackResult, Callbacks } from '../callbacks.js'
import type { Faults } from '../faults.js'
import type { EmulatedNotification } from '../notification.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import type { ClientSetting } from '../words.js'
import type { Secrets } from './secrets.js'

/** What the page's server uses of an emulator. */
export interface PageHost {
  readonly emulator: Readonly<Record<ClientSetting | 'ca', string>> & {
    readonly subscriptions: readonly SubscriptionRecord[]
    notify(notification: EmulatedNotification): Promise<readonly CallbackResult[]>
    endSubscription(subscriptionId: number): boolean
    revokeTokens(): void
  }
  readonly activity: Activity
  readonly callbacks: Callbacks
  readonly faults: Faults
  /** Environment variables that the page shows in addition to the emulator's, or instead of them. */
  readonly environment: Readonly<Record<string, string>>
  /** The file that has these variables, if there is one. */
  readonly envFile: string | undefined
}

/** What a part of the page knows of the page's address. */
export interface View {
  readonly host: PageHost
  /** What is open beside the lists. */
  readonly open: string
  readonly secrets: Secrets
  /** The address of the page with other values in its query; an empty one is left out. */
  linkTo(changes: Readonly<Record<string, string>>): string
}
