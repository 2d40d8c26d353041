/**
 * The folder of a spool: private, and open in one process at a time. The process that has the folder listens on a socket
 * in it, and a socket that accepts a connection belongs to a process that lives: the operating system closes the socket
 * when the process ends, however it ends. Process ids would not do, because they repeat in containers.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigurationError } from '../errors.js'
import { makeFolder } from '../shared/make-folder.js'
import { messageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { lockPattern, syncFolder } from './files.js'

/** Windows knows no modes and owners, and no sockets in folders. */
const isWindows = process.platform === 'win32'

/**
 * Creates the folder if it is not there.
 *
 * @throws `ConfigurationError` if that is impossible, if other users can read the folder or own it, or if it holds a
 * spool of an earlier version
 */
export async function prepareFolder(folder: string): Promise<void> {
  const refuse = (problem: string) => (cause?: unknown) => refusePath(folder, problem, cause)
  await createFolder(folder).catch((cause) => {
    const isFile = Object(cause).code === 'EEXIST'
    const problem = isFile ? 'is a file' : 'cannot be created'
    refusePath(folder, `${problem}: use a path below a folder that this process may write`, cause)
  })
  const { mode, uid } = await fs.stat(folder).catch(refuse('cannot be read'))
  if (!isWindows && (mode & 0o077) !== 0) {
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
  await fs.access(folder, R_OK | W_OK | X_OK).catch(refuse('cannot be written or read'))
  const hasDatabase = await fs.stat(join(folder, 'data.mdb')).then(Boolean, () => false)
  if (hasDatabase) {
    const advice = 'let 0.2 deliver what is in it, and use another folder'
    refusePath(folder, `holds a spool of version 0.2 (data.mdb): ${advice}`)
  }
}

/** Creates a folder, and syncs the names of all that were made: a power failure would take the spool with them. */
async function createFolder(folder: string): Promise<void> {
  const first = await makeFolder(folder)
  const top = first === undefined ? folder : dirname(first)
  for (let each = folder; each !== top; ) {
    each = dirname(each)
    await syncFolder(each, fs)
  }
}

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

const lockAttempts = 5

/** The longest name of a socket on every system: one byte less than macOS has room for. */
const maxSocketNameBytes = 103

/** Lets another process have the folder. */
export type ReleaseFolder = () => Promise<void>

/**
 * @throws `ConfigurationError` if the folder is open already: in another process, in whatever container, or in another
 * part of this one
 */
export async function lockFolder(folder: string): Promise<ReleaseFolder> {
  const release = await (isWindows ? lockByPipe(folder) : lockBySocket(folder))
  return (
    release ??
    refusePath(
      folder,
      'is open already, in this process or in another one: give each spool a folder of its own, or close the other one',
    )
  )
}

async function lockBySocket(folder: string): Promise<ReleaseFolder | undefined> {
  for (let attempt = 1; attempt <= lockAttempts; attempt += 1) {
    const name = `${randomBytes(8).toString('hex')}.lock`
    const release = await announce(folder, name)
    // Announce first, then look: of two processes that come at the same time at least one sees the other.
    const others = (await fs.readdir(folder)).filter((file) => lockPattern.test(file) && file !== name)
    const living = await Promise.all(others.map((file) => isAlive(folder, file)))
    if (release && !living.includes(true)) return release
    await release?.()
    // If both saw each other, a random wait lets one of them come first next time. A process that ends gets time to end.
    if (attempt < lockAttempts) await sleep(50 + Math.random() * 200)
  }
  return undefined
}

/** Windows has no sockets in folders. A pipe ends with its process, too, and its name exists once on the machine. */
async function lockByPipe(folder: string): Promise<ReleaseFolder | undefined> {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(pipeName(await fs.realpath(folder)))
    await once(server, 'listening')
  } catch (cause) {
    if (Object(cause).code === 'EADDRINUSE') return undefined
    refusePath(folder, 'cannot be locked', cause)
  }
  return async () => void (await new Promise((resolve) => server.close(resolve)))
}

/** The name of the pipe that locks a folder. Names of folders differ in more than case on Windows. */
export function pipeName(folder: string): string {
  const hash = createHash('sha256').update(folder.toLowerCase()).digest('hex')
  return `\\\\.\\pipe\\notification-subscriber-spool-${hash.slice(0, 32)}`
}

/** Listens on a socket of that name in the folder; `undefined` if another process took the socket for a dead one. */
async function announce(folder: string, name: string): Promise<ReleaseFolder | undefined> {
  const server = createServer((socket) => socket.destroy())
  // Bound under another name: between binding and listening a socket looks like that of a dead process.
  const unfinished = `${name}.new`
  const address = socketName(folder, unfinished)
  try {
    server.listen(address)
    await once(server, 'listening')
    await fs.rename(join(folder, unfinished), join(folder, name))
  } catch (cause) {
    server.close()
    if (Object(cause).code === 'ENOENT') return undefined
    refusePath(
      folder,
      'cannot hold a Unix socket, by which processes see each other: use a local disk',
      cause,
    )
  }
  return () => leave(server, join(folder, name))
}

async function leave(server: Server, path: string): Promise<void> {
  await fs.rm(path, { force: true })
  await new Promise((resolve) => server.close(resolve))
}

/** Whether a process listens on a socket. The socket of a process that ended is removed. */
async function isAlive(folder: string, name: string): Promise<boolean> {
  const socket = connect(socketName(folder, name))
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    const code = Object(error).code
    if (code === 'ENOENT') return false
    // A full queue of connections (EAGAIN) or missing rights (EACCES) say nothing: better refuse than share.
    if (code !== 'ECONNREFUSED') return true
    await fs.rm(join(folder, name), { force: true })
    return false
  } finally {
    socket.destroy()
  }
}

/** The address of a socket, which Node.js would cut without a word if it is too long. */
function socketName(folder: string, name: string): string {
  const path = join(folder, name)
  const shorter = relative('', path)
  const address = shorter.length < path.length ? shorter : path
  if (Buffer.byteLength(address) > maxSocketNameBytes) {
    const tooMany = Buffer.byteLength(address) - maxSocketNameBytes
    refusePath(folder, `is ${tooMany} bytes too long for the name of a Unix socket in it: use a shorter path`)
  }
  return address
}
