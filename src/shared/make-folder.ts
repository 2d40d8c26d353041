/** Folders for secrets and deliveries: for this user alone. */
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Creates a folder and those above it, each with mode 0700. Not with `recursive`: Node.js would try for ever where a
 * folder that exists answers "no such file or directory", as `/proc` does.
 *
 * @returns the first folder that was created; `undefined` if the folder was there already
 * @throws what the system says
 */
export async function makeFolder(folder: string): Promise<string | undefined> {
  try {
    return await makeOne(folder)
  } catch (error) {
    const parent = dirname(folder)
    if (Object(error).code !== 'ENOENT' || parent === folder) throw error
    const first = await makeFolder(parent)
    const made = await makeOne(folder)
    return first ?? made
  }
}

/** Creates a folder in one that exists; nothing if it is there already. */
async function makeOne(folder: string): Promise<string | undefined> {
  try {
    await mkdir(folder, { mode: 0o700 })
    return folder
  } catch (error) {
    const status = await stat(folder).catch(() => undefined)
    if (status?.isDirectory()) return undefined
    throw error
  }
}
