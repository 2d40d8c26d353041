/** What the parser's and the receiver's options have in common. */
import { ConfigurationError, type Issue } from '../errors.js'
import { formatIssues } from '../issues.js'

/** @throws ConfigurationError if there is an issue. */
export function refuseOptions(subject: string, issues: readonly Issue[]): void {
  if (issues.length > 0) {
    throw new ConfigurationError(`${subject} cannot work: ${formatIssues(issues)}.`, { issues })
  }
}

/** Whether a value is an object, with values by name. */
export function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
