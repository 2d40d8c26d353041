/**
 * One process at a time has a folder. That process listens on a socket in the folder, and a socket that accepts a
 * connection belongs to a process that lives: the operating system closes the socket when the process ends, however it
 * ends. Process ids would not do, because they repeat in containers.
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

const lockAttempts = 5

/** How often a process looks whether its lock is still there, in milliseconds. */
const watchIntervalMs = 1_000

/** The longest name of a socket on every system: one byte less than macOS has room for. */
const maxSocketNameBytes = 103

/** What a process has that has the folder. */
export interface FolderLock {
  /** Calls a function once if something removes the lock, so that another process may take the folder. */
  whenLost(onLost: () => void): void
  /** Lets another process have the folder. */
  release(): Promise<void>
}

/** @throws `ConfigurationError` if the folder is open already, in this process or in another one */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const lock = await (process.platform === 'win32' ? lockByPipe(folder) : lockBySocket(folder))
  return (
    lock ??
    refusePath(
      folder,
      'is open already, in this process or in another one: give each spool a folder of its own, or close the other one',
    )
  )
}

async function lockBySocket(folder: string): Promise<FolderLock | undefined> {
  for (let attempt = 1; attempt <= lockAttempts; attempt += 1) {
    const name = `${randomBytes(8).toString('hex')}.lock`
    const lock = await announce(folder, name)
    // Announce first, then look: of two processes that come at the same time at least one sees the other.
    const others = (await fs.readdir(folder)).filter((file) => lockPattern.test(file) && file !== name)
    const living = await Promise.all(others.map((file) => isAlive(folder, file)))
    if (lock && !living.includes(true)) return lock
    await lock?.release()
    // If both saw each other, a random wait lets one of them come first next time. A process that ends gets time to end.
    if (attempt < lockAttempts) await sleep(50 + Math.random() * 200)
  }
  return undefined
}

/** Listens on a socket of that name in the folder; `undefined` if another process took the socket for a dead one. */
async function announce(folder: string, name: string): Promise<FolderLock | undefined> {
  const server = createServer((socket) => socket.destroy())
  const path = join(folder, name)
  // Bound under another name: between binding and listening a socket looks like that of a dead process.
  const unfinished = `${path}.new`
  const address = socketAddress(folder, unfinished)
  try {
    server.listen(address)
    await once(server, 'listening')
    await fs.rename(unfinished, path)
  } catch (cause) {
    server.close()
    if (Object(cause).code === 'ENOENT') return undefined
    refusePath(
      folder,
      'cannot hold a Unix socket, by which processes see each other: use a local disk',
      cause,
    )
  }
  return {
    whenLost: (onLost) =>
      watchFile(path, { interval: watchIntervalMs, persistent: false }, ({ nlink }) => {
        if (nlink > 0) return
        unwatchFile(path)
        onLost()
      }),
    release: async () => {
      unwatchFile(path)
      await fs.rm(path, { force: true })
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Whether a process listens on a socket. The socket of a process that ended is removed. */
async function isAlive(folder: string, name: string): Promise<boolean> {
  const path = join(folder, name)
  const socket = connect(socketAddress(folder, path))
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    const code = Object(error).code
    if (code === 'ENOENT') return false
    // A full queue of connections (EAGAIN) or missing rights (EACCES) say nothing: better refuse than share.
    if (code !== 'ECONNREFUSED') return true
    await fs.rm(path, { force: true })
    return false
  } finally {
    socket.destroy()
  }
}

/** The address of a socket, which Node.js would cut without a word if it is too long. */
function socketAddress(folder: string, path: string): string {
  const shorter = relative('', path)
  const address = shorter.length < path.length ? shorter : path
  const tooMany = Buffer.byteLength(address) - maxSocketNameBytes
  if (tooMany > 0) {
    refusePath(folder, `is ${tooMany} bytes too long for the name of a Unix socket in it: use a shorter path`)
  }
  return address
}

/** Windows has no sockets in folders. A pipe ends with its process, too, and its name exists once on the machine. */
async function lockByPipe(folder: string): Promise<FolderLock | undefined> {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(pipeName(await fs.realpath(folder)))
    await once(server, 'listening')
  } catch (cause) {
    if (Object(cause).code === 'EADDRINUSE') return undefined
    refusePath(folder, 'cannot be locked', cause)
  }
  return {
    whenLost: () => {}, // No file can be removed.
    release: async () => void (await new Promise((resolve) => server.close(resolve))),
  }
}

/** The name of the pipe that locks a folder. Names of folders differ in more than case on Windows. */
export function pipeName(folder: string): string {
  const hash = createHash('sha256').update(folder.toLowerCase()).digest('hex')
  return `\\\\.\\pipe\\notification-subscriber-spool-${hash.slice(0, 32)}`
}
