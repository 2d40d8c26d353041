/** The folder of a spool: that it is there, that nobody else can read it, and that its data file is whole. */
import { chmod, mkdir, open, stat } from 'node:fs/promises'
import { endianness } from 'node:os'
import { dirname, join } from 'node:path'
import { refusePath } from './refuse-path.js'

/** The files that LMDB makes in the folder. */
const files = ['data.mdb', 'lock.mdb']
const lockFileBytes = 2 ** 14

/**
 * Creates the folder if it is not there.
 *
 * @throws `ConfigurationError` if that is impossible, or if others can read the folder
 */
export async function prepareFolder(folder: string): Promise<void> {
  try {
    const created = await makeFolder(folder)
    // Until the folder's name is on the disk, too, a power failure would take the whole folder.
    if (created !== undefined) await syncFolder(dirname(created))
  } catch (cause) {
    refusePath(folder, 'cannot be created', cause)
  }
  const status = await stat(folder).catch((cause) => refusePath(folder, 'cannot be read', cause))
  const mode = status.mode & 0o777
  if ((mode & 0o077) !== 0) {
    const octal = `0${mode.toString(8)}`
    refusePath(
      folder,
      `is open to other users (mode ${octal}): run "chmod 700" on it, or use a folder below it`,
    )
  }
}

/**
 * Creates a folder and those above it, and returns the first of them. Not with `recursive`: Node.js would try for ever
 * where a folder that exists answers "no such file or directory", as `/proc` does.
 */
async function makeFolder(folder: string): Promise<string | undefined> {
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

/**
 * Writes the file by which LMDB keeps threads apart, as far as it is not there. LMDB would make room for this file only
 * at its first use, and on a full disk that ends the process.
 */
export async function prepareLockFile(folder: string): Promise<void> {
  const handle = await open(join(folder, 'lock.mdb'), 'a', 0o600)
  try {
    const { size } = await handle.stat()
    if (size < lockFileBytes) await handle.appendFile(Buffer.alloc(lockFileBytes - size))
  } finally {
    await handle.close()
  }
}

/** Makes the files private, and writes their names to the disk, so that a power failure does not take them. */
export async function finishFolder(folder: string): Promise<void> {
  for (const file of files) await chmod(join(folder, file), 0o600)
  await syncFolder(folder)
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Where in each of the two header pages of an LMDB file (data version 2, 64 bits) stands what is looked at here. */
const headerBytes = 0xa0
const offsets = { magic: 0x18, pageSize: 0x30, lastPage: 0x90, transaction: 0x98 }
const magic = 0xbeefc0de

/**
 * Looks at the data file before LMDB maps it into memory: a damaged header, or pages beyond the end of the file, would
 * end the process with a signal.
 *
 * @returns `shortened` for a file that ended before its last page. Zeros were appended, which LMDB reports as damage
 * when it comes to them; pages that are missing may also be unused
 * @throws `ConfigurationError` if the data file is not one of LMDB
 */
export async function checkDataFile(folder: string): Promise<'whole' | 'shortened'> {
  // The header looks different on 32 bits.
  if (!/64|s390x/.test(process.arch)) return 'whole'
  const handle = await open(join(folder, 'data.mdb'), 'r+').catch((cause) => {
    if (Object(cause).code === 'ENOENT') return undefined
    return refusePath(folder, 'has a data file that cannot be opened', cause)
  })
  if (handle === undefined) return 'whole'
  try {
    const { size } = await handle.stat()
    if (size === 0) return 'whole'
    const read = async (position: number) => {
      const { buffer } = await handle.read(Buffer.alloc(headerBytes), 0, headerBytes, position)
      return new DataView(buffer.buffer, buffer.byteOffset, headerBytes)
    }
    const isLittleEndian = endianness() === 'LE'
    const first = await read(0)
    const pageSize = first.getUint32(offsets.pageSize, isLittleEndian)
    const headers = [first, await read(pageSize)]
    if (headers.some((header) => header.getUint32(offsets.magic, isLittleEndian) !== magic)) {
      refuseDamaged(folder)
    }
    const lastPages = headers.map((header) => header.getBigUint64(offsets.lastPage, isLittleEndian))
    const expectedSize = (Number(lastPages.reduce((a, b) => (a > b ? a : b))) + 1) * pageSize
    if (size >= expectedSize) return 'whole'
    // Sparse: takes no room on the disk.
    await handle.truncate(expectedSize)
    return 'shortened'
  } finally {
    await handle.close()
  }
}

/** @throws `ConfigurationError` that says what to do about a damaged data file */
export function refuseDamaged(folder: string, cause?: unknown): never {
  refusePath(folder, 'has a damaged data file: move the folder away to start with an empty one', cause)
}
