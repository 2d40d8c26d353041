/** What an {@link InvalidDeliveryError} says: enough to act on, however big or odd the body is. */
import { InvalidDeliveryError } from '../errors.js'
import { formatIssues } from '../issues.js'
import { thrownFailure } from './failure.js'

/** The error for what there is of a body, and what was thrown over it. */
export const invalidDelivery = (body: unknown, thrown: unknown): InvalidDeliveryError => {
  const { issues, cause } = thrownFailure(thrown)
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}
