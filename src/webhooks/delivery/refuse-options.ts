/** How parser, receiver and spool refuse options. */
import { ConfigurationError, type Issue } from '../../errors.js'
import { formatIssues } from '../../shared/issues.js'

/** @throws `ConfigurationError` about the options of `subject`, always */
export function refuseOptions(subject: string, issues: readonly Issue[]): never {
  throw new ConfigurationError(`${subject} cannot work: ${formatIssues(issues)}.`, { issues })
}
