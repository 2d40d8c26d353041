/** What an {@link InvalidDeliveryError} says: enough to act on, however big or odd the body is. */
import { InvalidDeliveryError } from '../../errors.js'
import { formatIssues } from '../../shared/issues.js'
import type { Failure } from './failure.js'

/** The error for what there is of a body, and why that is no delivery. */
export const invalidDelivery = (body: unknown, { issues, cause }: Failure): InvalidDeliveryError =>
  new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
