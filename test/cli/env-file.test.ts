import { lstat, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { UsageError } from '../../src/cli/command.js'
import { envFileAt, envLines, writeEnvFile } from '../../src/cli/env-file.js'
import { folderOfTest } from './support.js'

const variables = { NOTIFICATION_DOMAIN: 'emulator', CALLBACK_TOKEN: 'from the emulator' }

async function dotEnv(text?: string): Promise<string> {
  const file = join(await folderOfTest(), '.env')
  if (text !== undefined) await writeFile(file, text, { mode: 0o644 })
  return file
}

async function write(file: string, values: Record<string, string> = variables): Promise<string> {
  await writeEnvFile(await envFileAt(file), values)
  return readFile(file, 'utf8')
}

test('a new file has the variables, for its owner only', async () => {
  const file = await dotEnv()
  expect(parseEnv(await write(file))).toEqual(variables)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('the file is written anew at each start', async () => {
  const file = await dotEnv('')
  await write(file)
  const changed = { NOTIFICATION_DOMAIN: 'changed' }
  expect(parseEnv(await write(file, changed))).toEqual(changed)
})

test.each(['PORT=3000\n', '# of mine\n', '\n'])(
  'a file with other lines is refused and stays: %j',
  async (text) => {
    const file = await dotEnv(text)
    await expect(envFileAt(file)).rejects.toThrow(UsageError)
    expect(await readFile(file, 'utf8')).toBe(text)
  },
)

test('a symbolic link stays one', async () => {
  const target = await dotEnv('')
  const link = `${target}.link`
  await symlink(target, link)
  await write(link)
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect(parseEnv(await readFile(target, 'utf8'))).toEqual(variables)
})

test('values are quoted so that Node.js reads them back', () => {
  const values = { A: '/tmp/ca.pem', B: 'two words', C: "it's # one", D: '' }
  expect(parseEnv(envLines(values).join('\n'))).toEqual(values)
})
