/** Tells when nobody can know whether a subscription was created. */
import {
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  type SubscriptionRequestSummary,
} from '../errors.js'
import type { Progress } from '../http/send.js'

/**
 * What a create that failed with `error` fails with: an `OutcomeUnknownError` when an attempt may have created the
 * subscription and no answer settled it.
 */
export function createFailure(
  error: unknown,
  request: SubscriptionRequestSummary,
  { lostAttempts }: Progress,
): unknown {
  if (lostAttempts === 0) return error
  // A caller's own abort reason stays what it is.
  if (!(error instanceof NotificationError)) return error
  // A 201 with an unusable body says that a subscription exists; a page with another success says nothing.
  if (error instanceof ResponseValidationError && error.status === 201) return error
  return new OutcomeUnknownError(
    'The request to create the subscription was sent, but its answer was lost: the subscription may exist. ' +
      'Create it again with `recreateIfExists: true`: that replaces it if it exists, and returns the id either way. ' +
      `(${error.message})`,
    { request },
    { cause: error },
  )
}
