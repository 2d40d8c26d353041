/** What an {@link InvalidDeliveryError} says: enough to act on, however big or odd the body is. */
import { z } from 'zod'
import { InvalidDeliveryError, type Issue } from '../errors.js'
import type { Failure } from './outcome.js'
import { excerpt } from './text.js'

const shownIssues = 5

export function invalidDelivery(body: unknown, { issues, cause }: Failure): InvalidDeliveryError {
  return new InvalidDeliveryError(
    `Not a notification delivery: ${summaryOf(issues)}. The body is kept in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}

/** The first few issues on one line of bounded length. */
export function summaryOf(issues: readonly Issue[]): string {
  const shown = issues.slice(0, shownIssues).map(sentenceOf)
  if (issues.length > shownIssues) shown.push(`and ${issues.length - shownIssues} more`)
  return shown.join('; ')
}

function sentenceOf({ path, message }: Issue): string {
  const problem = excerpt(message, 300)
  return path.length === 0 ? problem : `${excerpt(z.core.toDotPath(path), 150)}: ${problem}`
}
