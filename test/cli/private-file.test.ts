import { execFileSync } from 'node:child_process'
import { mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { UsageError } from '../../src/cli/command.js'
import { readPrivateFile, writePrivateFile } from '../../src/cli/private-file.js'
import { folderOfTest } from './support.js'

test('a written file can be read by its owner only, replaces an older one, and leaves nothing else', async () => {
  const folder = await folderOfTest()
  const file = join(folder, 'file')
  await writeFile(file, 'old', { mode: 0o644 })
  await writePrivateFile(file, 'new')
  expect(await readPrivateFile(file)).toBe('new')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readdir(folder)).toEqual(['file'])
})

test('a file that is not there has no text', async () => {
  expect(await readPrivateFile(join(await folderOfTest(), 'missing'))).toBeUndefined()
})

test.each<[string, (path: string) => unknown]>([
  ['a FIFO', (path) => execFileSync('mkfifo', [path])],
  ['a folder', (path) => mkdir(path)],
  ['a device', (path) => symlink('/dev/zero', path)],
  ['a file larger than 1 MiB', (path) => writeFile(path, 'x'.repeat(1024 * 1024 + 1))],
])('%s is refused at once', async (_, make) => {
  const path = join(await folderOfTest(), 'thing')
  await make(path)
  await expect(readPrivateFile(path)).rejects.toThrow(UsageError)
})

test('a file that cannot be written leaves nothing behind', async () => {
  const folder = await folderOfTest()
  await mkdir(join(folder, 'taken/by-a-folder'), { recursive: true })
  await expect(writePrivateFile(join(folder, 'taken'), 'text')).rejects.toThrow(UsageError)
  expect(await readdir(folder)).toEqual(['taken'])
  await expect(writePrivateFile(join(folder, 'missing/file'), 'text')).rejects.toThrow(UsageError)
})
