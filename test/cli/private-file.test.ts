import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { UsageError } from '../../src/cli/command.js'
import { readPrivateFile, writePrivateFile } from '../../src/cli/private-file.js'
import { temporaryFolder } from './support.js'

async function folderOfTest(): Promise<string> {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  return folder.path
}

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
  ['a socket', (path) => listenAt(path)],
  ['larger than 1 MiB', (path) => writeFile(path, 'x'.repeat(1024 * 1024 + 1))],
  ['not text in UTF-8', (path) => writeFile(path, Buffer.from([0x70, 0xe4]))],
])('%s is refused at once', async (what, make) => {
  const path = join(await folderOfTest(), 'thing')
  await make(path)
  await expect(readPrivateFile(path)).rejects.toThrow(UsageError)
  await expect(readPrivateFile(path)).rejects.toThrow(what)
})

// Windows has no files that are devices.
test.skipIf(process.platform === 'win32')('a device is refused at once', async () => {
  await expect(readPrivateFile('/dev/zero')).rejects.toThrow('a device')
})

test('a file that cannot be written leaves nothing behind', async () => {
  const folder = await folderOfTest()
  await mkdir(join(folder, 'taken/by-a-folder'), { recursive: true })
  await expect(writePrivateFile(join(folder, 'taken'), 'text')).rejects.toThrow(UsageError)
  expect(await readdir(folder)).toEqual(['taken'])
  await expect(writePrivateFile(join(folder, 'missing/file'), 'text')).rejects.toThrow(UsageError)
})

async function listenAt(path: string): Promise<void> {
  const server = createServer().listen(path)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  await expect(readFile(path)).rejects.toThrow()
}
