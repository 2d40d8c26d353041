/** What an {@link InvalidDeliveryError} says: enough to act on, however big or odd the body is. */
import { InvalidDeliveryError } from '../errors.js'
import { formatIssues } from '../issues.js'
import { Failure } from './failure.js'

/** The error for what there is of a body, and what was thrown over it. */
export function invalidDelivery(body: unknown, thrown: unknown): InvalidDeliveryError {
  const { issues, cause } = Failure.of(thrown)
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is kept in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}
