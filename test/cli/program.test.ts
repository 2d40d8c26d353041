import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { saveState } from '../../src/cli/state.js'
import { call, folderOfTest, newState } from './support.js'

const url = ['--callback-url', 'https://app.example.com/n']
const subscription = ['--type', 'behavioral', '--user', 'alice', ...url]

/** Each of these calls cannot work. `<folder>` holds something else than an emulator. */
const mistakes: Readonly<Record<string, readonly (readonly string[])[]>> = {
  emulate: [[]],
  emulator: [
    ['--prot', '1'],
    ['start'],
    ['--port'],
    ['--port', 'x', '--state', '<folder>/new'],
    ['--page-port', '65536', '--state', '<folder>/new'],
    ['--host', 'no host', '--state', '<folder>/new'],
    ['--callback-ca', '/nowhere/ca.pem'],
    ['--callback-ca', 'package.json'],
    ['--state', '<folder>'],
    ['--state', 'package.json'],
    ['--state', '<folder>/damaged'],
    ['--state', '<folder>/moved'],
  ],
  notify: [
    ['--typ', 'y'],
    ['--category', 'b'],
    ['--state', '<folder>/new'],
    ['--state', '<folder>'],
  ],
  receive: [[], ['--secret', 'token=hush'], ['--secret', 'token=env:SECRET', '--port', '65536']],
  check: [
    ['-x'],
    ['--dotenv', '/nowhere/.env'],
    ['--callback-url', 'http://app.example.com/n', '--secret', 'token=env:SECRET'],
    ['--callback-url', 'https://app.example.com/n#top', '--secret', 'token=env:SECRET'],
    ['--callback-url', 'https://app.example.com', '--secret', 'token=env:SECRET'],
    url,
    ['--secret', 'token=env:SECRET'],
    [...url, '--secret', 'token=hush'],
    [...url, '--secret', 'hush'],
    [...url, '--secret', 'token=@/nowhere/x'],
    [...url, '--secret', 'token=@package.json'],
    [...url, '--secret', 'token=env:UNSET'],
    [...url, '--secret', 'token=env:EMPTY'],
    [...url, '--secret', 'token=env:SECRET', '--secret', 'Token=env:SECRET'],
    ['stray'],
    ['--lifecycle', '--username', 'alice'],
    ['--lifecycle', ...url],
  ],
  token: [['abc'], []],
  subscribe: [
    ['--user', 'alice', ...url],
    ['--type', 'cxScoreUpdated,x', '--user', 'alice,alice', '--callback-url', 'http://app.example.com/n'],
    ['--type', 'behavioral', '--user', 'alice', '--callback-url', 'http://127.0.0.1:3000/n'],
    [...subscription, '--parameter', 'username=env:SECRET'],
  ],
  update: [[], ['7'], ['7', '8', '--parameter', 'token=env:SECRET']],
  unsubscribe: [['seven'], ['99999999999999999999'], ['7', '--force']],
  spool: [
    [],
    ['<folder>', 'list', '7'],
    ['<folder>', 'show'],
    ['<folder>', 'remove', '1'],
    ['<folder>/nowhere'],
    ['<folder>'],
  ],
}

/** Of a service that nothing may reach. */
const env = {
  EMPTY: '',
  SECRET: 'hush',
  NOTIFICATION_BASE_URL: 'https://notifications.invalid',
  NOTIFICATION_USERNAME: 'service-user',
  NOTIFICATION_PASSWORD: 'hush',
}

test('a call that cannot work is a sentence, the nearest right name, and exit code 2', async () => {
  const folder = await folderOfTest()
  await mkdir(join(folder, 'damaged'))
  await writeFile(join(folder, 'damaged/state.json'), '{}')
  await saveState(join(folder, 'moved'), { ...newState(), baseUrl: 'none' }, {})
  const sentences: string[] = []
  for (const [name, calls] of Object.entries(mistakes)) {
    for (const args of calls) {
      const given = args.map((arg) => arg.replace('<folder>', folder))
      const { code, stdout, stderr } = await call([name, ...given], env)
      expect([name, ...args, code, stdout]).toEqual([name, ...args, 2, ''])
      expect(stderr).toMatch(/^\S.*(\n\(Did you mean .*)?$/)
      expect(stderr).not.toContain('hush')
      sentences.push(`${name} ${args.join(' ')}\n  ${stderr.replace('\n', '\n  ')}\n`)
    }
  }
  const text = sentences.join('\n').replaceAll(folder, '<folder>').replaceAll(join(process.cwd(), '/'), '')
  // Read this file as a whole after a change.
  await expect(text).toMatchFileSnapshot('../messages/command-line.txt')
})

test('the help names every command, and the help of each has an example and fits a screen', async () => {
  const { stdout, code } = await call([])
  expect([code, stdout]).toEqual([0, (await call(['--help'])).stdout])
  const names = Object.keys(mistakes).filter((name) => name !== 'emulate')
  expect([...stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name)).toEqual(names)
  for (const name of names) {
    const help = await call([name, '--help'])
    expect(help.code).toBe(0)
    const [about = '', example = ''] = help.stdout.split('\nExample:\n')
    expect(example).toContain(`npx --no notification-subscriber ${name}`)
    expect(help.stdout.split('\n').length).toBeLessThanOrEqual(24)
    expect(Math.max(...about.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
  }
})
