/** The private folder of a spool, and its files by name. */
import * as fs from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SpoolError } from '../errors.js'
import { messageOf } from '../shared/text.js'
import { parseName } from './format.js'
import { invalidPath, type SpoolReports } from './spool-options.js'

/** Creates the folder if it is not there, and closes it to others. @throws `ConfigurationError` if it cannot be used */
export async function prepareFolder(folder: string, files: SpoolFiles): Promise<void> {
  await createFolder(folder, files).catch((cause) =>
    invalidPath(folder, 'cannot be created: use a path below a folder that this process may write', cause),
  )
  const { mode, uid } = await fs.stat(folder)
  const ownUid = process.getuid?.() ?? uid
  if (uid !== ownUid) {
    const advice = 'run the app as that user, chown the folder with its files, or use one below it'
    invalidPath(folder, `belongs to another user (${uid}, and this process runs as ${ownUid}): ${advice}`)
  }
  if (process.platform === 'win32' || (mode & 0o077) === 0) return
  // Kubernetes opens the folder to a group at each mount (`fsGroup`). The spool closes its own folder, and no other.
  const isForeign = (name: string) => name !== 'lost+found' && parseName(name) === 'unknown'
  const foreign = (await fs.readdir(folder)).find(isForeign)
  const problem = `is open to other users (mode 0${(mode & 0o777).toString(8)})`
  if (foreign !== undefined) {
    invalidPath(folder, `${problem} and holds ${foreign}: run "chmod 700" on it, or use a folder below it`)
  }
  await fs.chmod(folder, 0o700).catch((cause) => invalidPath(folder, `${problem}: use another folder`, cause))
}

/** Creates a folder and syncs the names of all new folders: otherwise a power failure could lose the spool. */
async function createFolder(folder: string, files: SpoolFiles): Promise<void> {
  const first = await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let each = folder; each.length >= first.length; each = dirname(each)) {
    await syncFolder(dirname(each), files)
  }
}

/** What the spool needs of the file system. Tests pass functions that fail, wait or record calls. */
export type SpoolFiles = Pick<typeof fs, 'open' | 'readdir' | 'readFile' | 'rename' | 'unlink' | 'writeFile'>

/** The files in the folder. A failed write or removal is a `SpoolError` whose cause is the system's error. */
export class SpoolFolder {
  constructor(
    readonly path: string,
    private readonly files: SpoolFiles,
    readonly reports: SpoolReports,
  ) {}

  #pathOf(name: string): string {
    return join(this.path, name)
  }

  /** Sorted by name. */
  async list(): Promise<{ readonly name: string; readonly isFile: boolean }[]> {
    const found = await this.files.readdir(this.path, { withFileTypes: true })
    const listed = found.map((each) => ({ name: each.name, isFile: each.isFile() }))
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Opens a file, or creates it for this user alone. @throws the system's error */
  open(name: string, flags: 'r+' | 'wx+'): Promise<fs.FileHandle> {
    return this.files.open(this.#pathOf(name), flags, 0o600)
  }

  /** Writes a file; resolves when its text and name are on the disk. If that fails, no file remains. */
  async write(name: string, text: string): Promise<void> {
    const unfinished = `${name}.new`
    try {
      const options = { flag: 'wx', mode: 0o600, flush: true }
      await this.files.writeFile(this.#pathOf(unfinished), text, options)
      // A renamed file is always complete, so a file that is too short was damaged.
      await this.files.rename(this.#pathOf(unfinished), this.#pathOf(name))
      await this.sync()
    } catch (cause) {
      for (const each of [unfinished, name]) await this.remove(each).catch(() => {})
      failDisk(cause)
    }
  }

  /** The bytes of a file; none if the file is gone, which is read as damage. */
  read(name: string): Promise<Buffer> {
    return this.files.readFile(this.#pathOf(name)).catch(ifGone(Buffer.alloc(0)))
  }

  sync(): Promise<void> {
    return syncFolder(this.path, this.files)
  }

  /** Not synced: a power failure may restore the old name. Resolves with the new one. */
  async rename(from: string, to: string): Promise<string> {
    await this.files.rename(this.#pathOf(from), this.#pathOf(to)).catch(async (error) => {
      // A disk may report a failure of what it did.
      if (!(await this.list()).some(({ name }) => name === to)) throw error
    })
    return to
  }

  /** Not synced: a power failure may restore the file. Does nothing if the file is gone. */
  remove(name: string): Promise<void> {
    return this.files.unlink(this.#pathOf(name)).catch(ifGone(undefined))
  }

  /** Renames a damaged file, so that a person can inspect it. Needs no disk space. */
  keepDamaged(name: string): Promise<void> {
    return this.files.rename(this.#pathOf(name), `${this.#pathOf(name)}.damaged`).catch(ifGone(undefined))
  }
}

/** For `catch`: throws the system's error as an error of this package. */
export function failDisk(cause: unknown): never {
  throw new SpoolError(
    `The disk of the spool failed (${messageOf(cause)}): see its free space and its health.`,
    { reason: 'disk' },
    { cause },
  )
}

/** For `catch`: gives `result` if another program removed the file; otherwise as {@link failDisk}. */
export function ifGone<Result>(result: Result): (cause: unknown) => Result {
  return (cause) => (Object(cause).code === 'ENOENT' ? result : failDisk(cause))
}

async function syncFolder(folder: string, files: SpoolFiles): Promise<void> {
  // Windows syncs no folders.
  if (process.platform === 'win32') return
  const handle = await files.open(folder)
  await handle.sync().finally(() => handle.close())
}
