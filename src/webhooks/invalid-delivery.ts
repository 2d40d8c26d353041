/** What an {@link InvalidDeliveryError} says: enough to act on, however big or odd the body is. */
import { InvalidDeliveryError } from '../errors.js'
import { formatIssues } from '../issues.js'
import type { Failure } from './failure.js'

export function invalidDelivery(body: unknown, { issues, cause }: Failure): InvalidDeliveryError {
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is kept in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}
