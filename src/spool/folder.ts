/** The private folder of a spool: writes, reads, marks and removes its files. */
import { readFile } from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { SpoolError } from '../errors.js'
import { messageOf } from '../shared/text.js'
import { doneMark, type Line } from './format.js'
import { refusePath } from './spool-options.js'

/**
 * Creates the folder if it is not there.
 *
 * @throws `ConfigurationError` if that is impossible, or if other users can read the folder or own it
 */
export async function prepareFolder(folder: string, files: SpoolFiles): Promise<void> {
  await createFolder(folder, files).catch((cause) => {
    const isFile = Object(cause).code === 'EEXIST'
    const problem = isFile ? 'is a file' : 'cannot be created'
    refusePath(folder, `${problem}: use a path below a folder that this process may write`, cause)
  })
  const { mode, uid } = await fs.stat(folder)
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    const shown = (mode & 0o777).toString(8)
    const advice = 'run "chmod 700" on it, or use a folder below it'
    refusePath(folder, `is open to other users (mode 0${shown}): ${advice}`)
  }
  const ownUid = process.getuid?.() ?? uid
  if (uid !== ownUid) {
    const advice = 'run the app as that user, or use another folder'
    refusePath(folder, `belongs to another user (${uid}, and this process runs as ${ownUid}): ${advice}`)
  }
  const { R_OK, W_OK, X_OK } = fs.constants
  await fs
    .access(folder, R_OK | W_OK | X_OK)
    .catch((cause) => refusePath(folder, 'cannot be written or read', cause))
}

/** Creates a folder and syncs the names of all new folders: otherwise a power failure could lose the spool. */
async function createFolder(folder: string, files: SpoolFiles): Promise<void> {
  const first = await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const top = first === undefined ? folder : dirname(first)
  for (let each = folder; each !== top; ) {
    each = dirname(each)
    await syncFolder(each, files)
  }
}

/** The functions of the file system that the spool needs. Tests pass ones that fail, wait or record calls. */
export type SpoolFiles = Pick<typeof fs, 'open' | 'readdir' | 'rename' | 'unlink'> & {
  readFile(path: string): Promise<Buffer>
}

/** The real one. The older `readFile` reads a small file in 20 µs, that of `node:fs/promises` in 50. */
export const systemFiles: SpoolFiles = { ...fs, readFile: promisify(readFile) }

/** The files in the folder. A failed write or removal is a `SpoolError` whose cause is the system's error. */
export class SpoolFolder {
  readonly #path: string
  readonly #files: SpoolFiles

  constructor(path: string, files: SpoolFiles) {
    this.#path = path
    this.#files = files
  }

  /** The content of the folder, sorted by name. */
  async list(): Promise<{ readonly name: string; readonly isFile: boolean }[]> {
    const found = await this.#files.readdir(this.#path, { withFileTypes: true })
    const listed = found.map((each) => ({ name: each.name, isFile: each.isFile() }))
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Writes a file; resolves when its content and name are on the disk. If that fails, no file remains. */
  async write(name: string, content: Uint8Array): Promise<void> {
    const unfinished = `${name}.new`
    try {
      const handle = await this.#files.open(join(this.#path, unfinished), 'wx', 0o600)
      try {
        await handle.writeFile(content)
        await handle.sync()
      } finally {
        await handle.close()
      }
      // A renamed file is always complete, so a file that is too short was damaged.
      await this.#files.rename(join(this.#path, unfinished), join(this.#path, name))
      await syncFolder(this.#path, this.#files)
    } catch (cause) {
      for (const each of [unfinished, name]) await this.remove(each).catch(() => {})
      failWrite(cause)
    }
  }

  /** The content of a file; empty if the file is gone, which is read as damage. */
  async read(name: string): Promise<Buffer> {
    const content = await this.#files.readFile(join(this.#path, name)).catch(unlessGone(failRead))
    return content ?? Buffer.alloc(0)
  }

  /**
   * Marks entries of a file as done, all with one write: 44 instead of 52 µs of CPU for keeping and delivering 1 KB. Not
   * synced: a power failure may restore the entries. Does nothing if the file is gone.
   */
  async markDone(name: string, lines: readonly Line[]): Promise<void> {
    const handle = await this.#files.open(join(this.#path, name), 'r+').catch(unlessGone(failWrite))
    if (handle === undefined) return
    try {
      const offsets = lines.map(({ offset }) => offset)
      const from = Math.min(...offsets)
      const bytes = Buffer.alloc(Math.max(...offsets) + doneMark.length - from)
      await handle.read(bytes, 0, bytes.length, from)
      for (const offset of offsets) doneMark.copy(bytes, offset - from)
      await handle.write(bytes, 0, bytes.length, from)
    } finally {
      await handle.close()
    }
  }

  /** Not synced: a power failure may restore the old name. */
  rename(from: string, to: string): Promise<void> {
    return this.#files.rename(join(this.#path, from), join(this.#path, to)).catch(failWrite)
  }

  /** Not synced: a power failure may restore the file. Does nothing if the file is gone. */
  remove(name: string): Promise<void> {
    return this.#files.unlink(join(this.#path, name)).catch(unlessGone(failWrite))
  }

  /** Renames a damaged file, so that a person can inspect it. Needs no disk space. */
  keepDamaged(name: string): Promise<void> {
    const path = join(this.#path, name)
    return this.#files.rename(path, `${path}.damaged`).catch(unlessGone(failWrite))
  }
}

const failRead = failWith('Reading the disk failed')
const failWrite = failWith('Writing to the disk failed')

/** For `catch`: throws the system's error as an error of this package. @param what - the beginning of a sentence */
function failWith(what: string): (cause: unknown) => never {
  return (cause) => {
    throw new SpoolError(`${what} (${messageOf(cause)}).`, { reason: 'disk' }, { cause })
  }
}

/** For `catch`: a missing file is no error. */
function unlessGone(fail: (cause: unknown) => never): (cause: unknown) => undefined {
  return (cause) => (Object(cause).code === 'ENOENT' ? undefined : fail(cause))
}

/** Syncs the names in a folder to the disk. */
async function syncFolder(folder: string, files: SpoolFiles): Promise<void> {
  // Windows syncs no folders.
  if (process.platform === 'win32') return
  const handle = await files.open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
