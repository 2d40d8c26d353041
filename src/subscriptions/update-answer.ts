/** What the answers to an update and to unsubscribing mean (docs/service.md, Endpoints and Errors). */
import { SubscriptionNotFoundError } from '../errors.js'
import type { Answer, Progress } from '../http/send.js'
import { apiError, detailsOf, isSuccess, refuseForeignPage } from './any-answer.js'

/** What was tried, as the rest of a sentence. */
export const toUnsubscribe = 'unsubscribe'
export const toUpdate = 'update the subscription'

/**
 * Returns if the answer is a success.
 *
 * @throws `SubscriptionNotFoundError` on 404, `ApiError` for other error statuses, `ResponseValidationError` for a page
 */
export function readSubscriptionAnswer(
  answer: Answer,
  subscriptionId: number,
  attempt: string,
  { lostAttempts }: Progress,
): void {
  if (isSuccess(answer)) {
    refuseForeignPage(answer, attempt)
    return
  }
  if (answer.status !== 404) throw apiError(answer, attempt, { mayHaveTakenEffect: lostAttempts > 0 })
  throw new SubscriptionNotFoundError(
    `There is no active subscription ${subscriptionId}: it was unsubscribed or replaced, or the service ended it ` +
      'after three failed callbacks in a row. Create a new one if notifications are still wanted.',
    { ...detailsOf(answer), subscriptionId },
  )
}
