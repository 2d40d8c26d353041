/**
 * One process at a time owns a folder. It listens on a socket in the folder. A socket that accepts a connection belongs
 * to a live process, because the operating system closes it when the process ends. Process ids do not work: they repeat
 * in containers.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { unwatchFile, watchFile } from 'node:fs'
import * as fs from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockPattern } from './format.js'
import { refusePath } from './spool-options.js'

/** How often a process checks that its lock still exists, in milliseconds. */
const watchIntervalMs = 1_000

/** The longest socket name that works on every system: one byte less than the limit of macOS. */
const maxSocketNameBytes = 103

/** The lock of the process that owns the folder. */
export interface FolderLock {
  /** Calls a function when the lock is removed, so that another process may own the folder. */
  whenLost(onLost: () => void): void
  /** Releases the folder. */
  release(): Promise<void>
}

/** @throws `ConfigurationError` if the folder is open already, in this process or in another one */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const lock = await (process.platform === 'win32' ? lockByPipe(folder) : lockBySocket(folder))
  const advice = 'give each spool a folder of its own, or close the other one'
  return lock ?? refusePath(folder, `is open already, in this process or in another one: ${advice}`)
}

async function lockBySocket(folder: string): Promise<FolderLock | undefined> {
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    const name = `${randomBytes(8).toString('hex')}.lock`
    const lock = await announce(folder, name)
    // Announce first, then look: if two processes start together, at least one sees the other.
    const others = (await fs.readdir(folder)).filter((file) => lockPattern.test(file) && file !== name)
    const living = await Promise.all(others.map((file) => isAlive(folder, file)))
    if (lock && !living.includes(true)) return lock
    await lock?.release()
    // If both saw each other, a random wait lets one come first. A process that is ending gets time to end.
    await sleep(50 + Math.random() * 200)
  }
  return undefined
}

/** Listens on a socket of that name in the folder; `undefined` if another process considered the socket dead and removed it. */
async function announce(folder: string, name: string): Promise<FolderLock | undefined> {
  const path = join(folder, name)
  // Bound under another name: between binding and listening, a socket looks dead.
  const unfinished = `${path}.new`
  const server = createServer((socket) => socket.destroy()).listen(socketAddress(folder, unfinished))
  try {
    await once(server, 'listening')
    await fs.rename(unfinished, path)
  } catch (cause) {
    server.close()
    if (Object(cause).code === 'ENOENT') return undefined
    const problem = 'cannot hold a Unix socket, by which processes see each other'
    refusePath(folder, `${problem}: use a local disk`, cause)
  }
  return {
    whenLost: (onLost) =>
      watchFile(path, { interval: watchIntervalMs }, ({ nlink }) => {
        if (nlink === 0) onLost()
      }),
    release: async () => {
      unwatchFile(path)
      await fs.rm(path, { force: true })
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Whether a process listens on a socket. Removes the socket of an ended process. */
async function isAlive(folder: string, name: string): Promise<boolean> {
  const path = join(folder, name)
  const socket = connect(socketAddress(folder, path))
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    // A full connection queue (EAGAIN) or missing rights (EACCES) prove nothing: refuse rather than share.
    if (!['ECONNREFUSED', 'ENOENT'].includes(Object(error).code)) return true
    await fs.rm(path, { force: true })
    return false
  } finally {
    socket.destroy()
  }
}

/** The address of a socket. Node.js would silently cut a longer one. */
function socketAddress(folder: string, path: string): string {
  const shorter = relative('', path)
  const address = shorter.length < path.length ? shorter : path
  const tooMany = Buffer.byteLength(address) - maxSocketNameBytes
  if (tooMany > 0) {
    refusePath(folder, `is ${tooMany} bytes too long for the name of a Unix socket in it: use a shorter path`)
  }
  return address
}

/** Windows has no sockets in folders. A pipe also ends with its process, and its name is unique on the machine. */
async function lockByPipe(folder: string): Promise<FolderLock | undefined> {
  const server = createServer((socket) => socket.destroy()).listen(pipeName(await fs.realpath(folder)))
  try {
    await once(server, 'listening')
  } catch (cause) {
    if (Object(cause).code === 'EADDRINUSE') return undefined
    refusePath(folder, 'cannot be locked', cause)
  }
  return {
    whenLost: () => {}, // There is no file to remove.
    release: () => server[Symbol.asyncDispose](),
  }
}

/** The name of the pipe that locks a folder. On Windows, names of folders ignore case. */
export function pipeName(folder: string): string {
  const hash = createHash('sha256').update(folder.toLowerCase()).digest('hex')
  return `\\\\.\\pipe\\notification-subscriber-spool-${hash.slice(0, 32)}`
}
