import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import fs, { mkdir, readdir, rm } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, vi } from 'vitest'
import { lockFolder } from '../../src/spool/lock.js'
import { reportsOf } from '../../src/spool/spool-options.js'
import { expectPage } from '../support/message-page.js'
import { RunningProgram } from '../support/running-program.js'
import {
  eventLog,
  idsOf,
  keep,
  never,
  numbered,
  onWindows,
  recorder,
  refusalOf,
  test,
  until,
} from './support.js'

const program = fileURLToPath(new URL('programs/holds-a-spool.ts', import.meta.url))
const loader = import.meta.resolve('tsx')
// Whatever folder it runs in, the program runs on the sources.
const environment = {
  ...process.env,
  TSX_TSCONFIG_PATH: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)),
}
const refusal = /is open already, in this process or in another one/

/** A process that has a spool open, or was refused, as its first line says. */
function hold(path: string, wrapper: readonly string[] = [], folder = process.cwd()): RunningProgram {
  const [command = '', ...args] = [...wrapper, process.execPath, '--import', loader, program, path]
  return new RunningProgram(args, { command, folder, environment })
}

/** The next calls of a function of the file system fail. */
function failing(name: 'lstat' | 'rename' | 'rm', code: string, times = 1) {
  const original = fs[name]
  const replaceBy = (replacement: unknown) => {
    Object.assign(fs, { [name]: replacement })
    syncBuiltinESMExports()
  }
  const failures = { left: times, [Symbol.dispose]: () => replaceBy(original) }
  replaceBy(async () => {
    failures.left -= 1
    if (failures.left === 0) replaceBy(original)
    throw Object.assign(new Error(code), { code })
  })
  return failures
}

/** Starts a program as a worker of a cluster whose primary is in another folder, as that of PM2 is. */
const inCluster = [
  process.execPath,
  '-e',
  `const cluster = require('node:cluster')
  const [, execPath, flag, loader, exec, path] = process.argv
  cluster.setupPrimary({ exec, args: [path], execArgv: [flag, loader], cwd: process.cwd() })
  process.chdir('/')
  cluster.fork()`,
  '--',
]

describe('a folder', () => {
  test('whose name is too long for a socket is refused, unless it is short from the working directory', async (folder) => {
    const name = 'x'.repeat(90)
    const path = join(folder.path, name)
    expect((await refusalOf(path)).message).toMatch(
      /^The delivery spool cannot work: `path`: the folder \S+ is \d+ bytes too long/,
    )
    await mkdir(join(path, 'y'), { recursive: true, mode: 0o700 })
    // In a cluster Node.js would listen in the primary, at the whole path.
    for (const wrapper of [[], inCluster]) {
      await using holder = hold(join(path, 'y'), wrapper, path)
      expect(await holder.line(/./)).toBe('open')
    }
  })

  test('on a disk without sockets is refused with the cause', async (folder) => {
    using _rename = failing('rename', 'EPERM')
    const { cause, issues, message } = await refusalOf(folder.path)
    expect(issues).toMatchObject([{ path: ['path'] }])
    expect(cause).toMatchObject({ code: 'EPERM' })
    await expectPage('spool-lock', { 'a disk without sockets': message.replace(folder.path, '<folder>') })
    expect(await readdir(folder.path)).toEqual([])
  })
})

describe('one process at a time has a spool open', () => {
  test('if several processes open it at the same time, at most one succeeds, and so does the next attempt', async (folder) => {
    for (let round = 0; round < 3; round += 1) {
      const opened = await Promise.allSettled(Array.from({ length: 4 }, () => folder.open()))
      const spools = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      expect(spools.length).toBeLessThanOrEqual(1)
      for (const { reason } of opened.filter((result) => result.status === 'rejected')) {
        expect(reason.message).toMatch(refusal)
      }
      await Promise.all(spools.map((spool) => spool.close()))
    }
    await using _spool = await folder.open()
  })

  test('another process is refused while the first one lives, also while that is suspended, but not after it was killed', async (folder) => {
    {
      await using holder = hold(folder.path)
      expect(await holder.line(/./)).toBe('open')
      await expect(folder.open()).rejects.toThrow(refusal)
      holder.kill('SIGSTOP')
      await expect(folder.open()).rejects.toThrow(refusal)
      // It takes no connection meanwhile: in the end the system refuses more, which proves nothing.
      const lock = await folder.lock()
      const sockets: Socket[] = []
      for (let isFull = false; !isFull; ) {
        const socket = connect(lock)
        sockets.push(socket)
        isFull = await once(socket, 'connect').then(
          () => false,
          ({ code }) => code === 'EAGAIN',
        )
      }
      await expect(folder.open()).rejects.toThrow(refusal)
      for (const socket of sockets) socket.destroy()
    }
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    await until(() => spool.size === 0)
    // What it had kept before it was killed.
    expect(idsOf(delivered)).toEqual(['nheld'])
    await using late = hold(folder.path)
    expect(await late.line(/./)).toMatch(refusal)
  })

  test('containers with process ids and a network of their own see each other', async (folder) => {
    const wrapper = ['unshare', '--pid', '--net', '--fork', '--kill-child', '--mount-proc']
    const [command = '', ...args] = [...wrapper, 'true']
    try {
      execFileSync(command, args, { stdio: 'ignore' })
    } catch {
      console.warn('Not checked: this user may make no namespaces (unshare needs root).')
      return
    }
    {
      await using holder = hold(folder.path, wrapper)
      expect(await holder.line(/./)).toBe('open')
      await using other = hold(folder.path, wrapper)
      expect(await other.line(/./)).toMatch(refusal)
      await expect(folder.open()).rejects.toThrow(refusal)
    }
    // The process in the container ends a moment after the command that made the container.
    await using _spool = await vi.waitFor(() => folder.open(), 10_000)
  })

  test('a spool whose lock was removed stops: it delivers and keeps nothing more, and says so', async (folder) => {
    const { logger, logged } = eventLog(/lock-lost/)
    let finish = () => {}
    const { deliver, delivered } = recorder(() => new Promise<void>((resolve) => (finish = resolve)))
    await using spool = await folder.open({ deliver, concurrency: 1, logger })
    for (const id of [1, 2]) await keep(spool, numbered(id))
    await until(() => delivered.length === 1)
    await rm(await folder.lock())
    await until(() => logged().length > 0)
    expect(logged()).toEqual([{ event: 'spool.lock-lost', path: folder.path }])
    const refused = { code: 'SPOOL', reason: 'lock' }
    await expect(keep(spool, numbered(3))).rejects.toMatchObject(refused)
    await expect(spool.retry(1)).rejects.toMatchObject(refused)
    await expect(spool.deadLetters().next()).rejects.toMatchObject(refused)
    // Another process may have the folder now, and gets what was not begun.
    const other = recorder()
    await using next = await folder.open({ deliver: other.deliver })
    finish()
    await until(() => next.size === 0)
    expect(idsOf(other.delivered)).toContain('n2')
    expect(await spool.close()).toBe(1)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test.for(['EACCES', 'EIO', 'ESTALE'])(
    'a folder that cannot be looked at for a moment (%s) is no lost lock',
    async (folder, code) => {
      await using spool = await folder.open()
      using looks = failing('lstat', code, 2)
      await until(() => looks.left === 0)
      await keep(spool, numbered(1))
    },
  )

  test('a lock that cannot be removed is logged: `close` ends all the same, and the folder can be opened', async (folder) => {
    const { logger, logged } = eventLog(/write-failed|closed/)
    const spool = await folder.open({ logger, deliver: never })
    await keep(spool, numbered(1))
    using _failing = failing('rm', 'EIO')
    expect(await spool.close({ timeoutMs: 0 })).toBe(1)
    const err = expect.objectContaining({ message: 'EIO' })
    expect(logged()).toEqual([
      { event: 'spool.write-failed', err },
      { event: 'spool.closed', size: 1 },
    ])
    expect(await folder.names(/\.lock$/)).toHaveLength(1)
    expect(await folder.drain()).toEqual(['n1'])
    expect(await folder.names(/\.lock$/)).toEqual([])
  })

  test('a process that connects to the lock and stays delays no close', async (folder) => {
    const spool = await folder.open()
    const socket = connect({ path: await folder.lock(), allowHalfOpen: true })
    await once(socket, 'connect')
    await spool.close()
    socket.destroy()
  })
})

test('on Windows one process at a time has the pipe', async (folder) => {
  await (await folder.open()).close()
  // Other systems take the name of the pipe for that of a socket in the working directory.
  await onWindows(async () => {
    const first = await lockFolder(folder.path, 16, reportsOf(folder.path, false))
    await expect(lockFolder(folder.path, 16, reportsOf(folder.path, false))).rejects.toThrow(refusal)
    await first.release(3)
    const second = await lockFolder(folder.path, 16, reportsOf(folder.path, false))
    expect(second.inFlightBefore).toBe(3)
    await second.release()
    expect(await readdir(folder.path)).toEqual([])
  })
})
