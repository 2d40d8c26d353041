/** The error for a body that is no delivery: what it says is enough to act on, however big or odd the body is. */
import { InvalidDeliveryError } from '../errors.js'
import { formatIssues } from '../issues.js'
import { messageOf } from '../text.js'
import { Failure, failure } from './failure.js'

/**
 * @param body - what there is of the body
 * @param thrown - a `Failure`, or what came from outside: from a stream, or from an object whose getters throw
 */
export function invalidDelivery(body: unknown, thrown: unknown): InvalidDeliveryError {
  const { issues, cause } = Failure.is(thrown)
    ? thrown
    : failure(`the body cannot be read (${messageOf(thrown)})`, thrown)
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is kept in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}
