/** How a spool refuses a folder. */
import { ConfigurationError } from '../errors.js'
import { messageOf } from '../shared/excerpt.js'
import { formatIssues } from '../shared/issues.js'

/** @throws `ConfigurationError` that names the folder, and what the system says */
export function refusePath(folder: string, problem: string, cause?: unknown): never {
  const message = `the folder ${folder} ${problem}${cause === undefined ? '' : ` (${messageOf(cause)})`}`
  const issues = [{ path: ['path'], message }]
  throw new ConfigurationError(
    `The delivery spool cannot work: ${formatIssues(issues)}.`,
    { issues },
    cause === undefined ? undefined : { cause },
  )
}
