import { chmod, chown, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, vi } from 'vitest'
import { expectPage } from '../support/message-page.js'
import {
  filesWith,
  keep,
  never,
  numbered,
  onWindows,
  openSpool,
  recorder,
  refusalOf,
  test,
  until,
} from './support.js'

describe('the folder', () => {
  test('is created for this user alone, with the folders above it, and so are the files in it', async (folder) => {
    const path = join(folder.path, 'a.b', 'deep')
    const spool = await openSpool({ path, deliver: never })
    await keep(spool, numbered(1))
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    const files = (await readdir(path)).filter((name) => name.endsWith('.open'))
    expect(files).toHaveLength(1)
    for (const file of files) expect((await stat(join(path, file))).mode & 0o777).toBe(0o600)
    await spool.close({ timeoutMs: 0 })
  })

  test.for([0o750, 0o2770, 0o777])(
    'of its own that became mode %o is for its owner alone again',
    async (folder, mode) => {
      await folder.leave(numbered(1))
      await chmod(folder.path, mode)
      const { deliver, delivered } = recorder()
      await using spool = await folder.open({ deliver })
      expect((await stat(folder.path)).mode & 0o7777).toBe(0o700)
      await until(() => spool.size === 0)
      expect(delivered).toEqual([numbered(1)])
    },
  )

  test.for([0o750, 0o705, 0o770])(
    'of mode %o with files of others is refused, and left as it is',
    async (folder, mode) => {
      await mkdir(join(folder.path, 'lost+found'), { recursive: true })
      await writeFile(join(folder.path, 'package.json'), '{}')
      await chmod(folder.path, mode)
      expect((await refusalOf(folder.path)).message).toContain(`(mode 0${mode.toString(8)})`)
      expect((await stat(folder.path)).mode & 0o777).toBe(mode)
      await rm(join(folder.path, 'package.json'))
      await (await folder.open()).close()
    },
  )

  test('of another user is refused, also for root', async (folder) => {
    await mkdir(folder.path, { mode: 0o700 })
    try {
      await chown(folder.path, 12_345, 12_345)
    } catch {
      console.warn('Not checked: only root may give a folder to another user.')
      return
    }
    expect((await refusalOf(folder.path)).message).toContain('12345')
  })

  test('that cannot be created is refused with what the system says, and what to do', async (folder) => {
    await writeFile(folder.path, 'a file')
    const below = await refusalOf(join(folder.path, 'below'))
    expect(below.cause).toMatchObject({ code: 'ENOTDIR' })
    const file = await refusalOf(folder.path)
    expect(file.cause).toMatchObject({ code: 'EEXIST' })
    await rm(folder.path)
    await mkdir(folder.path, { mode: 0o750 })
    await writeFile(join(folder.path, 'notes.txt'), '')
    const open = await refusalOf(folder.path)
    await chmod(folder.path, 0o700)
    const getuid = vi.spyOn(process, 'getuid').mockReturnValue(12_345)
    const others = await refusalOf(folder.path)
    getuid.mockRestore()
    const shown = ({ message }: Error) =>
      message.replaceAll(folder.path, '<folder>').replace(/user \(\d+/, 'user (1000')
    await expectPage('spool-folder', {
      'open to a group': shown(open),
      'a file': shown(file),
      'below a file': shown(below),
      'of another user': shown(others),
    })
  })

  test('on Windows is used whatever its mode is, and is not synced', async (folder) => {
    await mkdir(folder.path, { mode: 0o755 })
    const opened: string[] = []
    const files = filesWith({
      before: (operation, file) => void (operation === 'open' && opened.push(file)),
    })
    await onWindows(async () => {
      const spool = await folder.open({ deliver: never }, files)
      await keep(spool, numbered(1))
      await spool.close({ timeoutMs: 0 })
    })
    expect(opened).toEqual([expect.stringMatching(/\.open$/)])
  })
})
