/** How the parser and the receiver refuse options. */
import { ConfigurationError, type Issue } from '../../errors.js'
import { formatIssues } from '../../shared/issues.js'

/** @throws ConfigurationError */
export function refuseOptions(subject: string, issues: readonly Issue[]): never {
  throw new ConfigurationError(`${subject} cannot work: ${formatIssues(issues)}.`, { issues })
}
