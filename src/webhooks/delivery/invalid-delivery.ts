/** What an {@link InvalidDeliveryError} says: enough to act on, however big or odd the body is. */
import { InvalidDeliveryError, type Issue } from '../../errors.js'
import { formatIssues } from '../../shared/issues.js'

/** The error for what there is of a body, and why that is no delivery. */
export function invalidDelivery(
  body: unknown,
  { issues, cause }: { readonly issues: readonly Issue[]; readonly cause: unknown },
): InvalidDeliveryError {
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}
