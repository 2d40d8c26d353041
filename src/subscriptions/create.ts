/** Creates a subscription, and says so honestly when its outcome cannot be known. */
import {
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  type SubscriptionConflictError,
  type SubscriptionRequestSummary,
} from '../errors.js'
import type { Answer, Progress } from '../http/send.js'
import { readCreateAnswer } from './answers.js'

/**
 * @param send - sends the request, keeping `progress` up to date
 * @throws `OutcomeUnknownError` when an attempt may have created the subscription and no answer settles it.
 */
export async function create(
  request: SubscriptionRequestSummary,
  send: (progress: Progress) => Promise<Answer>,
): Promise<number | SubscriptionConflictError> {
  const progress: Progress = { lostAttempts: 0 }
  try {
    return readCreateAnswer(await send(progress), request)
  } catch (error) {
    if (progress.lostAttempts === 0) throw error
    // A caller's own abort reason stays what it is; a success with an unusable body says more than "unknown".
    if (!(error instanceof NotificationError) || error instanceof ResponseValidationError) throw error
    throw new OutcomeUnknownError(
      'The request to create the subscription was sent, but its answer was lost: the subscription may exist. ' +
        'Create it again with `recreateIfExists: true`: that replaces it if it exists, and returns the id either way. ' +
        `(${error.message})`,
      { request },
      { cause: error },
    )
  }
}
