import { execFileSync } from 'node:child_process'
import { chown, lstat, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { UsageError } from '../../src/cli/command.js'
import { EnvFile, envLines } from '../../src/cli/env-file.js'
import { temporaryFolder } from './support.js'

const variables = { NOTIFICATION_DOMAIN: 'emulator', CALLBACK_TOKEN: 'from the emulator' }

/** The path of a `.env` with this text. */
async function dotEnv(text?: string): Promise<string> {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  const file = join(folder.path, '.env')
  if (text !== undefined) await writeFile(file, text, { mode: 0o644 })
  return file
}

async function write(file: string, values: Record<string, string> = variables): Promise<string> {
  const envFile = await EnvFile.open(file)
  await envFile.write(values)
  return readFile(file, 'utf8')
}

test('a new file has the variables, for its owner only', async () => {
  const file = await dotEnv()
  expect(parseEnv(await write(file))).toEqual(variables)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test.each([
  ['', 'PORT=3000\n# of mine\nEMPTY=\n', ''],
  ['without a last line break', 'PORT=3000', ''],
  ['with the line breaks of Windows', 'PORT=3000\r\nNAME=x\r\n', ''],
])('lines of others stay as they are %s', async (_, others) => {
  const file = await dotEnv(others)
  const first = await write(file)
  expect(first.startsWith(others)).toBe(true)
  await writeFile(file, `${first}LATER=1\n`)
  const second = await write(file, { ...variables, NOTIFICATION_DOMAIN: 'changed' })
  expect(second).toBe(
    `${first.replace('NOTIFICATION_DOMAIN=emulator', 'NOTIFICATION_DOMAIN=changed')}LATER=1\n`,
  )
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('a CALLBACK_TOKEN of the file stays, and is not there twice', async () => {
  const file = await dotEnv('CALLBACK_TOKEN=mine\n')
  const text = await write(file)
  expect(parseEnv(text)).toEqual({ ...variables, CALLBACK_TOKEN: 'mine' })
  expect(text.match(/CALLBACK_TOKEN/g)).toHaveLength(1)
})

test.each(['NOTIFICATION_DOMAIN=acme', 'export NOTIFICATION_SCOPE = all', '  NOTIFICATION_BASE_URL=x'])(
  'a file that sets %s is refused, with the line, and stays as it is',
  async (line) => {
    const text = `PORT=1\n${line}\n`
    const file = await dotEnv(text)
    await expect(EnvFile.open(file)).rejects.toThrow(/ sets NOTIFICATION_\w+ in line 2,/)
    expect(await readFile(file, 'utf8')).toBe(text)
  },
)

test('a line that another program adds while the emulator starts is noticed', async () => {
  const file = await dotEnv('PORT=1\n')
  const envFile = await EnvFile.open(file)
  await writeFile(file, 'NOTIFICATION_DOMAIN=acme\n')
  await expect(envFile.write(variables)).rejects.toThrow(UsageError)
  expect(await readFile(file, 'utf8')).toBe('NOTIFICATION_DOMAIN=acme\n')
})

test('half a block is refused', async () => {
  const file = await dotEnv()
  const lines = (await write(file)).split('\n')
  for (const half of [lines.slice(1), lines.slice(0, -2)]) {
    await writeFile(file, half.join('\n'))
    await expect(EnvFile.open(file)).rejects.toThrow('only one of the two comments')
  }
})

test('a symbolic link stays one', async () => {
  const target = await dotEnv('PORT=1\n')
  const link = `${target}.link`
  await symlink(target, link)
  await (await EnvFile.open(link)).write(variables)
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect(parseEnv(await readFile(target, 'utf8'))).toEqual({ PORT: '1', ...variables })
})

test('what is no regular file is refused at once', async () => {
  const file = await dotEnv()
  execFileSync('mkfifo', [file])
  await expect(EnvFile.open(file)).rejects.toThrow(UsageError)
  await mkdir(`${file}.d`)
  await expect(EnvFile.open(`${file}.d`)).rejects.toThrow(UsageError)
})

// Windows has no user ids.
test.skipIf(process.platform === 'win32')('the file of another user is refused', async () => {
  const file = process.getuid?.() === 0 ? await dotEnv('') : '/etc/hosts'
  if (process.getuid?.() === 0) await chown(file, 12_345, 12_345)
  await expect(EnvFile.open(file)).rejects.toThrow('belongs to another user')
})

test('values are quoted so that Node.js reads them back', () => {
  const values = { A: '/tmp/ca.pem', B: 'two words', C: "it's # one", D: '' }
  expect(parseEnv(envLines(values).join('\n'))).toEqual(values)
})
