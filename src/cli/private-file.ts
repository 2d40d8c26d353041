/** Files with secrets: read without waiting, and written for their owner only. */
import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { messageOf } from '../shared/text.js'
import { UsageError } from './command.js'

const maxBytes = 1024 * 1024

/**
 * The text of a file, or nothing if there is no such file.
 *
 * @throws `UsageError` if `path` is not a regular file, is larger than 1 MiB, is not UTF-8, or cannot be read
 */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  try {
    // Checked before opening: an open FIFO or device may already have lost data.
    const { size } = await regularFile(path, stat(path))
    if (size > maxBytes) throw new UsageError(`${path} is larger than 1 MiB: name another file`)
    // Another process may have put a FIFO there meanwhile. A blocking open would wait for its writer.
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      await regularFile(path, file.stat())
      const content = await file.readFile()
      // Writing this text back would change other bytes, too.
      if (!isUtf8(content))
        throw new UsageError(`${path} is not text in UTF-8: convert it, or name another file`)
      return content.toString('utf8')
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof UsageError) throw error
    if (Object(error).code === 'ENOENT') return undefined
    throw new UsageError(`${path} cannot be read: ${messageOf(error)}`)
  }
}

type Stats = Awaited<ReturnType<typeof stat>>

async function regularFile(path: string, found: Promise<Stats>): Promise<Stats> {
  const stats = await found
  if (stats.isFile()) return stats
  const kinds = [
    [stats.isDirectory(), 'a folder'],
    [stats.isFIFO(), 'a FIFO'],
    [stats.isSocket(), 'a socket'],
  ] as const
  const kind = kinds.find(([is]) => is)?.[1] ?? 'a device'
  throw new UsageError(`${path} is ${kind}, not a regular file: remove it, or name another place`)
}

/**
 * Writes a file with mode 0600. A reader finds the old content or the new one, never a part.
 *
 * @throws `UsageError` if the file cannot be written
 */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}`
  try {
    await writeFile(unfinished, content, { mode: 0o600, flag: 'wx' })
    // The umask may have reduced the mode above.
    await chmod(unfinished, 0o600)
    await rename(unfinished, path)
  } catch (error) {
    await rm(unfinished, { force: true })
    // Without the rest of Node.js' message, which names the unfinished file.
    throw new UsageError(`${path} cannot be written: ${messageOf(error).split(', ')[0]}`)
  }
}

/**
 * Writes a new file with mode 0600.
 *
 * @throws `UsageError` if the file exists, or cannot be written
 */
export async function writeNewPrivateFile(path: string, content: string): Promise<void> {
  try {
    await writeFile(path, content, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw new UsageError(
      Object(error).code === 'EEXIST'
        ? `${path} was just written by another emulator: end that one, or name another folder`
        : `${path} cannot be written: ${messageOf(error)}`,
    )
  }
}
