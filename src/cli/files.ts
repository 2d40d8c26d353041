/** Reads files that flags name. */
import { readFile } from 'node:fs/promises'
import { messageOf } from '../shared/excerpt.js'
import { UsageError } from './usage-error.js'

/**
 * The text of the file that a flag names, or nothing where the flag was not given.
 *
 * @throws `UsageError` for a file that cannot be read
 */
export async function contentOf(flag: string, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${flag} names a file that cannot be read: ${messageOf(error)}`)
  }
}
