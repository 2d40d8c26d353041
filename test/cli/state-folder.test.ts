import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { UsageError } from '../../src/cli/command.js'
import { StateFolder } from '../../src/cli/state-folder.js'
import { folderOfTest, newState } from './support.js'

test('what was saved is loaded, and readable for the owner only', async () => {
  const path = join(await folderOfTest(), 'deep/state')
  const state = newState()
  await (await StateFolder.open(path)).save(state)
  expect(await (await StateFolder.open(path)).load()).toEqual(state)
  expect((await stat(path)).mode & 0o777).toBe(0o700)
  expect((await readdir(path)).sort()).toEqual(['ca.pem', 'state.json'])
  for (const file of await readdir(path)) expect((await stat(join(path, file))).mode & 0o777).toBe(0o600)
  expect(await readFile(join(path, 'ca.pem'), 'utf8')).toBe(state.ca)
})

test('a temporary folder has the certificate only, and is gone after its release', async () => {
  const folder = await StateFolder.temporary()
  await folder.save(newState())
  expect(await readdir(folder.path)).toEqual(['ca.pem'])
  await folder.release()
  await expect(stat(folder.path)).rejects.toThrow('ENOENT')
})

test('the page is known until the release, and the rest stays', async () => {
  const folder = await StateFolder.open(await folderOfTest())
  await folder.release()
  expect(await folder.load()).toBeUndefined()
  const state = newState()
  await folder.save({ ...state, pageUrl: 'http://127.0.0.1:1/x/' })
  expect(await folder.load()).toMatchObject({ pageUrl: 'http://127.0.0.1:1/x/' })
  await folder.release()
  expect(await folder.load()).toEqual(state)
})

test.each([0o755, 0o750, 0o701])(
  'a folder with mode %o is refused, and nothing is written there',
  async (mode) => {
    const path = await folderOfTest()
    await chmod(path, mode)
    await expect(StateFolder.open(path)).rejects.toThrow(UsageError)
    expect(await readdir(path)).toEqual([])
  },
)

test.each<[string, (file: string) => unknown]>([
  ['no JSON', (file) => writeFile(file, 'no JSON')],
  ['something else', (file) => writeFile(file, '{}')],
  ['no port', (file) => writeFile(file, JSON.stringify({ ...newState(), port: 70_000 }))],
  ['a folder', (file) => mkdir(file)],
])('a state.json that is %s is refused at once, with its path', async (_, make) => {
  const path = await folderOfTest()
  await make(join(path, 'state.json'))
  const folder = await StateFolder.open(path)
  await expect(folder.load()).rejects.toThrow(UsageError)
  await expect(folder.load()).rejects.toThrow(join(path, 'state.json'))
})

test.skipIf(process.platform !== 'linux').each(['/proc/nothing/deep', '/dev/null', '/dev/null/state'])(
  'a place where no folder can be made is refused at once: %s',
  async (path) => {
    await expect(StateFolder.open(path)).rejects.toThrow(UsageError)
  },
)
