/** Files with secrets: read without waiting, and written for their owner only. */
import { randomUUID } from 'node:crypto'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { messageOf } from '../shared/text.js'
import { UsageError } from './command.js'

const maxBytes = 1024 * 1024

/** Nothing if there is no such file. @throws `UsageError` for all but a regular file of at most 1 MiB that can be read */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  try {
    // Checked before opening: a FIFO would wait for its writer, and a device may never end.
    const stats = await stat(path)
    if (!stats.isFile()) {
      throw new UsageError(`${path} is not a regular file: remove it, or name another place`)
    }
    if (stats.size > maxBytes) throw new UsageError(`${path} is larger than 1 MiB: name another file`)
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof UsageError) throw error
    if (Object(error).code === 'ENOENT') return undefined
    throw new UsageError(`${path} cannot be read: ${messageOf(error)}`)
  }
}

/** With mode 0600. A reader finds the old content or the new one, never a part. @throws `UsageError` if it cannot be written */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}`
  try {
    await writeFile(unfinished, content, { mode: 0o600, flag: 'wx' })
    await rename(unfinished, path)
  } catch (error) {
    await rm(unfinished, { force: true })
    // Without the rest of Node.js' message, which names the unfinished file.
    throw new UsageError(`${path} cannot be written: ${messageOf(error).split(', ')[0]}`)
  }
}
