/** Delivers notifications to the subscriptions that want them (docs/service.md, Delivery). */
import { messageOf } from '../../shared/excerpt.js'
import type { FaultPlan } from '../service/faults.js'
import type { SubscriptionRecord, SubscriptionStore } from '../service/subscription-store.js'
import type { CallbackLog } from './callback-log.js'
import type { CallbackSender, PostCallback } from './callback-sender.js'
import { deliveryBodyWriter, type EmulatedNotification } from './emulated-notification.js'

/** What became of one callback. */
export interface CallbackResult {
  /** The subscription that the callback was for. */
  readonly subscriptionId: number
  /** Where the callback went. */
  readonly callbackUrl: string
  /** Status of the receiver's answer, if there was one. */
  readonly status?: number
  /** Why the callback failed; missing after an answer with 2xx, complete in time, which alone is a success. */
  readonly error?: Error
  /** Whether the subscription was no longer active when this callback was done with. */
  readonly subscriptionEnded: boolean
}

interface NotifierParts {
  readonly store: SubscriptionStore
  readonly sender: CallbackSender
  readonly faults: FaultPlan
  readonly log: CallbackLog
}

export class Notifier {
  readonly #parts: NotifierParts

  constructor(parts: NotifierParts) {
    this.#parts = parts
  }

  /**
   * One callback to each matching subscription; resolves when all were answered or failed. Callbacks to one
   * subscription may overlap: "consecutive" failures are then counted in the order in which they complete.
   */
  async notify(notification: EmulatedNotification): Promise<readonly CallbackResult[]> {
    const { store, sender } = this.#parts
    const writeBody = deliveryBodyWriter(notification)
    const subscriptions = store.matching(notification.category, notification.username)
    return Promise.all(
      subscriptions.map(async (subscription) => {
        const { subscriptionId, callbackUrl } = subscription
        const outcome = await sender.whenFree(callbackUrl, (post) =>
          this.#call(subscription, writeBody, post),
        )
        if (outcome.error === undefined) store.callbackSucceeded(subscriptionId)
        else store.callbackFailed(subscriptionId)
        const subscriptionEnded = !store.isActive(subscriptionId)
        return { subscriptionId, callbackUrl, ...outcome, subscriptionEnded }
      }),
    )
  }

  async #call(
    { subscriptionId, callbackUrl }: Pick<SubscriptionRecord, 'subscriptionId' | 'callbackUrl'>,
    writeBody: (subscriptionId: number) => string,
    post: PostCallback,
  ): Promise<{ status?: number; error?: Error }> {
    const { store, faults, log } = this.#parts
    // Looked up only now: while the callback queued, parameters may have changed, or the subscription may have ended.
    const parameters = store.parameters(subscriptionId)
    if (parameters === undefined) {
      return { error: new Error('The subscription ended before this callback was sent') }
    }
    const fault = faults.takeForCallback(subscriptionId)
    const body = writeBody(subscriptionId)
    const headers = { 'content-type': 'application/json', ...parameters }
    const finish = log.begin({ subscriptionId, callbackUrl, headers, body, ...(fault && { fault }) })
    const outcome = await outcomeOf(post({ headers, body, fault }))
    const { error, ...answered } = outcome
    finish(error === undefined ? answered : { ...answered, error: messageOf(error) })
    return outcome
  }
}

async function outcomeOf(answer: Promise<number>): Promise<{ status?: number; error?: Error }> {
  try {
    const status = await answer
    if (status >= 200 && status <= 299) return { status }
    return { status, error: new Error(`The callback was answered with status ${status}`) }
  } catch (error) {
    return { error: withMessage(error) }
  }
}

/** Node.js gives an error without a message where every address of a host refused: then the messages of each. */
function withMessage(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  if (error.message !== '' || !(error instanceof AggregateError)) return error
  return new Error(error.errors.map(messageOf).join('; '), { cause: error })
}
