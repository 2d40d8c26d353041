/**
 * One process at a time owns a folder. It listens on a socket in the folder. A socket that accepts a connection belongs
 * to a live process, because the operating system closes it when the process ends. Process ids do not work: they repeat
 * in containers.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { basename, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockPattern } from './format.js'
import { invalidPath, type SpoolReports } from './spool-options.js'

/** How often a process looks whether its lock still exists, in milliseconds. */
const watchIntervalMs = 1_000

/** The longest socket name that works on every system: one byte less than the limit of macOS. */
const maxSocketNameBytes = 103

export type Lock = Awaited<ReturnType<typeof lockFolder>>

/**
 * Resolves with the lock, and with how many deliveries may have been in flight in a process that ended without a release.
 *
 * @param concurrency - how many this process may have in flight
 * @throws `ConfigurationError` if the folder is open already, in this process or in another one
 */
export async function lockFolder(folder: string, concurrency: number, reports: SpoolReports) {
  let inFlightBefore = 0
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    const name = lockName(concurrency)
    const lock = await announce(folder, name, reports)
    // Announce first, then look: if two processes start together, at least one sees the other.
    const others = (await fs.readdir(folder)).filter((file) => lockPattern.test(file) && file !== name)
    const left = await Promise.all(others.map((file) => removeIfDead(folder, file)))
    inFlightBefore = Math.max(inFlightBefore, ...left.map((count) => count ?? 0))
    if (lock && !left.includes(undefined)) return { ...lock, inFlightBefore }
    await lock?.release()
    // If both saw each other, a random wait lets one come first. A process that is ending gets time to end.
    await sleep(50 + Math.random() * 200)
  }
  const advice = 'give each spool a folder of its own, or close the other one'
  return invalidPath(folder, `is open already, in this process or in another one: ${advice}`)
}

/** Listens on a socket of that name in the folder; `undefined` if another process considered the socket dead and removed it. */
async function announce(folder: string, name: string, reports: SpoolReports) {
  const path = join(folder, name)
  // Bound under another name: between binding and listening, a socket looks dead.
  const unfinished = `${path}.new`
  // Exclusive: a worker of a cluster would listen in its primary, which may be of another user.
  const address = { path: socketAddress(folder, unfinished), exclusive: true }
  const server = createServer((socket) => socket.destroy()).listen(address)
  try {
    await once(server, 'listening')
    await (process.platform === 'win32' ? fs.writeFile(path, '') : fs.rename(unfinished, path))
  } catch (cause) {
    server.close()
    if (Object(cause).code === 'ENOENT') return undefined
    invalidPath(folder, 'cannot hold the Unix socket of a lock: use a local disk, in Docker a volume', cause)
  }
  let watch: NodeJS.Timeout | undefined
  const lost = new Promise<void>((resolve) => {
    watch = setInterval(() => {
      fs.lstat(path).catch(({ code }) => {
        // A folder that cannot be looked at for a moment (EACCES, EIO, ESTALE) is no lost lock.
        if (code === 'ENOENT' && watch !== undefined) resolve()
      })
    }, watchIntervalMs).unref()
  })
  return {
    /** Resolves when the lock is removed, so that another process may own the folder. */
    lost,
    /** Releases the folder, also on a disk that fails. The next process delivers `inFlight` deliveries one at a time. */
    async release(inFlight = 0): Promise<void> {
      clearInterval(watch)
      watch = undefined
      const next = join(folder, lockName(inFlight))
      await (inFlight > 0 ? fs.rename(path, next) : fs.rm(path, { force: true })).catch((err) => {
        reports.writeFailed(err, 'Removing the lock failed: the next start removes it')
      })
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Removes the socket of an ended process. Resolves with the number in its name; `undefined` if a process may listen on it. */
async function removeIfDead(folder: string, name: string): Promise<number | undefined> {
  const path = join(folder, name)
  const socket = connect(socketAddress(folder, path))
  try {
    await once(socket, 'connect')
    return undefined
  } catch (error) {
    // A full connection queue (EAGAIN), or the lock of another user (EACCES), proves nothing: refuse rather than share.
    if (!['ECONNREFUSED', 'ENOENT'].includes(Object(error).code)) return undefined
    // On a disk that fails the socket stays, and looks as dead to the next process.
    await fs.rm(path, { force: true }).catch(() => {})
    return Number(lockPattern.exec(name)?.[1])
  } finally {
    socket.destroy()
  }
}

function lockName(inFlight: number): string {
  return `${randomBytes(6).toString('hex')}-${inFlight}.lock`
}

/** The address of a socket. Node.js would silently cut a longer one. Windows has pipes, with names of the whole machine. */
function socketAddress(folder: string, path: string): string {
  if (process.platform === 'win32') return `\\\\.\\pipe\\notification-subscriber-${basename(path, '.new')}`
  const shorter = relative('', path)
  const address = shorter.length < path.length ? shorter : path
  const tooMany = Buffer.byteLength(address) - maxSocketNameBytes
  if (tooMany > 0) {
    invalidPath(
      folder,
      `is ${tooMany} bytes too long for the name of a Unix socket in it: use a shorter path`,
    )
  }
  return address
}
