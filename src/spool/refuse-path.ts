/** How a spool refuses the folder that it is to live in. */
import { ConfigurationError } from '../errors.js'
import { messageOf } from '../shared/excerpt.js'

/** @throws ConfigurationError that names the folder, and what the system says */
export function refusePath(folder: string, problem: string, cause?: unknown): never {
  const message = `the folder ${folder} ${problem}${cause === undefined ? '' : ` (${messageOf(cause)})`}`
  throw new ConfigurationError(
    `The delivery spool cannot work: path: ${message}.`,
    { issues: [{ path: ['path'], message }] },
    cause === undefined ? undefined : { cause },
  )
}
