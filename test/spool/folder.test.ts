import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { expectPage } from '../support/message-page.js'
import { keep, mount, never, numbered, openSpool, refusalOf, spoolFolder } from './support.js'

describe('the folder', () => {
  test('is created for this user alone, with the folders above it, and so are the files in it', async () => {
    await using folder = await spoolFolder()
    const path = join(folder.path, 'a.b', 'deep')
    const spool = await openSpool({ path, deliver: never })
    await keep(spool, numbered(1))
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    const files = (await readdir(path)).filter((name) => name.endsWith('.batch'))
    expect(files).toHaveLength(1)
    for (const file of files) expect((await stat(join(path, file))).mode & 0o777).toBe(0o600)
    await spool.close({ timeoutMs: 0 })
  })

  test.each([0o750, 0o705, 0o770, 0o777, 0o710])('of mode %o is refused', async (mode) => {
    await using folder = await spoolFolder()
    await mkdir(folder.path)
    await chmod(folder.path, mode)
    expect((await refusalOf(folder.path)).message).toContain(`(mode 0${mode.toString(8)})`)
  })

  test('of another user is refused, also for root', async () => {
    await using folder = await spoolFolder()
    await mkdir(folder.path, { mode: 0o700 })
    try {
      await chown(folder.path, 12_345, 12_345)
    } catch {
      console.warn('Not checked: only root may give a folder to another user.')
      return
    }
    expect((await refusalOf(folder.path)).message).toContain('12345')
  })

  test('that cannot be created is refused with what the system says, and what to do', async () => {
    await using folder = await spoolFolder()
    await writeFile(folder.path, 'a file')
    const below = await refusalOf(join(folder.path, 'below'))
    expect(below.cause).toMatchObject({ code: 'ENOTDIR' })
    const file = await refusalOf(folder.path)
    expect(file.cause).toMatchObject({ code: 'EEXIST' })
    await rm(folder.path)
    await mkdir(folder.path, { mode: 0o750 })
    const open = await refusalOf(folder.path)
    const shown = ({ message }: Error) => message.replaceAll(folder.path, '<folder>')
    await expectPage('spool-folder', {
      'open to a group': shown(open),
      'a file': shown(file),
      'below a file': shown(below),
    })
  })

  test('on a disk that cannot be written is refused', async () => {
    await using folder = await spoolFolder()
    await (await folder.open()).close()
    if (!mount(folder.path, ['--bind', folder.path], ['-o', 'remount,ro,bind'])) return
    try {
      expect((await refusalOf(folder.path)).cause).toMatchObject({ code: 'EROFS' })
    } finally {
      execFileSync('umount', ['-l', folder.path])
    }
  })
})
