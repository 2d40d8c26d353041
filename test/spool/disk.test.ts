import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigurationError, DeliveryReceiver } from 'notification-subscriber'
import { describe, expect, test, vi } from 'vitest'
import { idsOf, keep, numbered, openSpool, realTime, recorder, spoolFolder, until } from './support.js'

const never = () => new Promise<never>(() => {})
const root = process.getuid?.() === 0

async function refusalOf(path: string): Promise<ConfigurationError> {
  const error = await openSpool({ path, deliver: () => {} }).catch((reason) => reason)
  expect(error).toBeInstanceOf(ConfigurationError)
  return error
}

describe('the folder', () => {
  test('is created for this user alone, with the folders above it, and so are the files in it', async () => {
    await using folder = await spoolFolder()
    const path = join(folder.path, 'a.b', 'deep')
    await using spool = await openSpool({ path, deliver: () => {} })
    await keep(spool, numbered(1))
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    for (const file of ['data.mdb', 'lock.mdb']) {
      expect((await stat(join(path, file))).mode & 0o777).toBe(0o600)
    }
  })

  test.each([0o750, 0o705, 0o770, 0o777, 0o710])(
    'of mode %o is refused with a sentence that says what to do',
    async (mode) => {
      await using folder = await spoolFolder()
      await mkdir(folder.path)
      await chmod(folder.path, mode)
      const { message } = await refusalOf(folder.path)
      expect(message).toContain(
        `${folder.path} is open to other users (mode 0${mode.toString(8)}): run "chmod 700"`,
      )
    },
  )

  test('that cannot be created is refused with what the system says', async () => {
    await using folder = await spoolFolder()
    await writeFile(folder.path, 'a file')
    const below = await refusalOf(join(folder.path, 'below'))
    expect(below.message).toMatch(/cannot be created.*ENOTDIR/)
    expect(below.cause).toMatchObject({ code: 'ENOTDIR' })
    expect((await refusalOf(folder.path)).message).toMatch(/cannot be created.*EEXIST/)
  })

  test('below one that is there and takes no folders is refused, and `open` does not try for ever', async () => {
    expect((await refusalOf('/proc/nowhere/spool')).message).toMatch(/cannot be created.*\/proc/)
  })

  test('on a disk that cannot be written is refused', async () => {
    await using folder = await spoolFolder()
    await (await openSpool({ path: folder.path, deliver: () => {} })).close()
    if (!mount(folder.path, ['--bind', folder.path], ['-o', 'remount,ro,bind'])) return
    try {
      expect((await refusalOf(folder.path)).message).toMatch(/EROFS|read-only/i)
    } finally {
      execFileSync('umount', ['-l', folder.path])
    }
  })

  test('whose name is too long for a socket is refused, but may be named relative to the working directory', async () => {
    await using folder = await spoolFolder()
    const path = join(folder.path, 'x'.repeat(90))
    expect((await refusalOf(path)).message).toMatch(
      /^The delivery spool cannot work: `path`: the folder \S+ is \d+ bytes too long/,
    )
  })
})

describe('options', () => {
  test('that cannot work are refused together, with their paths', async () => {
    const error = await openSpool({
      path: '',
      deliver: 'function',
      concurrency: 0,
      deliverTimeoutMs: -1,
      maxBytes: 0.5,
      unknown: 1,
    } as never).catch((reason) => reason)
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(error.issues.map(({ path }: { path: unknown[] }) => path.join('.')).toSorted()).toEqual(
      ['', 'concurrency', 'deliver', 'deliverTimeoutMs', 'maxBytes', 'path'].toSorted(),
    )
  })
})

describe('a damaged file', () => {
  async function filled(path: string): Promise<number> {
    const spool = await openSpool({ path, deliver: never })
    await Promise.all(
      Array.from({ length: 500 }, (_, id) => keep(spool, numbered(id, { text: 'x'.repeat(900) }))),
    )
    await spool.close({ timeoutMs: 0 })
    return (await stat(join(path, 'data.mdb'))).size
  }

  test.each([
    ['overwritten', async (file: string, size: number) => writeFile(file, Buffer.alloc(size, 7))],
    ['overwritten with zeros', async (file: string, size: number) => writeFile(file, Buffer.alloc(size))],
    [
      'with another header',
      async (file: string) => {
        const bytes = await readFile(file)
        await writeFile(file, bytes.fill(255, 0, 8_192))
      },
    ],
    ['shorter than its header', (file: string) => truncate(file, 100)],
    ['cut after its header', (file: string) => truncate(file, 8_192)],
  ] as const)('%s is a ConfigurationError, and not the end of the process', async (_what, damage) => {
    await using folder = await spoolFolder()
    const size = await filled(folder.path)
    await damage(join(folder.path, 'data.mdb'), size)
    expect((await refusalOf(folder.path)).message).toMatch(/damaged data file: move the folder away/)
  })

  test('that is cut in the middle ends no process: it is refused, or what is left can be read', async () => {
    await using folder = await spoolFolder()
    const size = await filled(folder.path)
    await truncate(join(folder.path, 'data.mdb'), Math.floor(size / 2))
    const logger = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() }
    const { deliver, delivered } = recorder()
    const result = await openSpool({ path: folder.path, deliver, logger }).catch((error) => error)
    if (result instanceof ConfigurationError) return
    await until(() => logger.error.mock.calls.length > 0 || delivered.length === 500)
    await result.close({ timeoutMs: 0 })
  })
})

describe('a disk that is full', () => {
  test('costs no subscription: 204 and a report; what waits is delivered, and then there is room again', async () => {
    await using folder = await spoolFolder()
    const path = join(folder.path, 'small')
    await mkdir(path, { recursive: true })
    if (!mount(path, ['-t', 'tmpfs', '-o', 'size=6m,mode=0700', 'tmpfs'])) return
    const written = vi.spyOn(console, 'error').mockImplementation(() => {})
    try {
      let finish = () => {}
      const finished = new Promise<void>((resolve) => (finish = resolve))
      const { deliver, delivered } = recorder(() => finished)
      const spool = await openSpool({ path, deliver })
      const errors: unknown[] = []
      const receiver = new DeliveryReceiver({
        secrets: { token: 's' },
        onError: (error) => errors.push(error),
      }).onAny(spool.keep)
      const send = async (id: number, length: number) => {
        const body = JSON.stringify(numbered(id, { text: 'x'.repeat(length) }))
        const answer = await receiver.handle({ method: 'POST', headers: { token: 's' }, body })
        expect(answer.status).toBe(204)
      }
      for (let id = 0; id < 600; id += 1) await send(id, 10_000)
      const kept = spool.size
      expect(kept).toBeGreaterThan(100)
      expect(errors).toHaveLength(600 - kept)
      expect(errors).toContainEqual(expect.objectContaining({ name: 'SpoolError', reason: 'disk' }))

      // Full as it is, it can be emptied.
      finish()
      await until(() => spool.size === 0)
      expect(new Set(idsOf(delivered)).size).toBe(kept)
      expect(delivered).toHaveLength(kept)
      errors.length = 0
      for (let id = 1_000; id < 1_050; id += 1) await send(id, 1_000)
      expect(errors).toEqual([])
      await until(() => spool.size === 0)
      await spool.close()
    } finally {
      execFileSync('umount', ['-l', path])
      written.mockRestore()
    }
  })

  test('of which others took everything fails for each delivery, and works again when they give it back', async () => {
    await using folder = await spoolFolder()
    const path = join(folder.path, 'small')
    await mkdir(path, { recursive: true })
    if (!mount(path, ['-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'tmpfs'])) return
    const written = vi.spyOn(console, 'error').mockImplementation(() => {})
    try {
      const spool = await openSpool({ path: join(path, 'spool'), deliver: never })
      await writeFile(join(path, 'other'), Buffer.alloc(4 * 2 ** 20)).catch(() => {})
      const results = await Promise.allSettled(
        Array.from({ length: 200 }, (_, id) => keep(spool, numbered(id, { text: 'x'.repeat(10_000) }))),
      )
      expect(results.some(({ status }) => status === 'rejected')).toBe(true)
      await writeFile(join(path, 'other'), '')
      // The disk is tried again once a second.
      await realTime(1_100)
      await keep(spool, numbered('after', { text: 'x'.repeat(10_000) }))
      await spool.close({ timeoutMs: 0 })
    } finally {
      execFileSync('umount', ['-l', path])
      written.mockRestore()
    }
  })
})

/** Mounts, or says why the test checks nothing. */
function mount(path: string, ...steps: (readonly string[])[]): boolean {
  try {
    for (const args of steps) execFileSync('mount', [...args, path], { stdio: 'ignore' })
    return true
  } catch {
    // CI runs as root.
    console.warn(`Not checked: ${root ? 'this container' : 'a user other than root'} may not mount anything.`)
    return false
  }
}
