/** Delivers notifications to the subscriptions that want them (interface.md section 6). */

import type { SubscriptionStore } from '../service/subscription-store.js'
import type { CallbackSender } from './callback-sender.js'
import { deliveryBodyWriter, type EmulatedNotification } from './emulated-notification.js'

/** What became of one callback. */
export interface CallbackResult {
  /** The subscription that it was for. */
  readonly subscriptionId: number
  /** Where it went. */
  readonly callbackUrl: string
  /** Status of the receiver's answer, if there was one. */
  readonly status?: number
  /** Why the callback failed; missing if it succeeded. Everything but an answer with 2xx, complete in time, is a failure. */
  readonly error?: Error
  /** Whether the subscription was no longer active when this callback was done with. */
  readonly subscriptionEnded: boolean
}

export class Notifier {
  readonly #store: SubscriptionStore
  readonly #sender: CallbackSender

  constructor(store: SubscriptionStore, sender: CallbackSender) {
    this.#store = store
    this.#sender = sender
  }

  /**
   * One callback to each matching subscription; resolves when all were answered or failed. Callbacks to one
   * subscription may overlap: "consecutive" failures are then counted in the order in which they complete.
   */
  async notify(notification: EmulatedNotification): Promise<readonly CallbackResult[]> {
    const writeBody = deliveryBodyWriter(notification)
    const subscriptions = this.#store.matching(notification.category, notification.username)
    return Promise.all(
      subscriptions.map(async ({ subscriptionId, callbackUrl }) => {
        const outcome = await this.#call(subscriptionId, callbackUrl, writeBody)
        if (outcome.error === undefined) this.#store.callbackSucceeded(subscriptionId)
        else this.#store.callbackFailed(subscriptionId)
        const subscriptionEnded = !this.#store.isActive(subscriptionId)
        return { subscriptionId, callbackUrl, ...outcome, subscriptionEnded }
      }),
    )
  }

  async #call(
    subscriptionId: number,
    callbackUrl: string,
    writeBody: (subscriptionId: number) => string,
  ): Promise<{ status?: number; error?: Error }> {
    try {
      const status = await this.#sender.send(callbackUrl, () => {
        // Looked up only now: while it queued, parameters may have changed and the subscription may have ended.
        const headers = this.#store.parameters(subscriptionId)
        if (headers === undefined) throw new Error('The subscription ended before this callback was sent')
        return { headers, body: writeBody(subscriptionId) }
      })
      if (status >= 200 && status <= 299) return { status }
      return { status, error: new Error(`The callback was answered with status ${status}`) }
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) }
    }
  }
}
