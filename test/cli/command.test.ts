import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkCommand } from '../../src/cli/check.js'
import type { Command } from '../../src/cli/command.js'
import { emulatorCommand } from '../../src/cli/emulator.js'
import { notifyCommand } from '../../src/cli/notify.js'
import { subscribeCommand, unsubscribeCommand, updateCommand } from '../../src/cli/subscriptions.js'
import { tokenCommand } from '../../src/cli/token.js'
import { call, folderOfTest } from './support.js'

const subscribing: Readonly<Record<string, Command>> = {
  subscribe: subscribeCommand,
  update: updateCommand,
  unsubscribe: unsubscribeCommand,
}
const commands: Readonly<Record<string, Command>> = {
  emulator: emulatorCommand,
  notify: notifyCommand,
  check: checkCommand,
  token: tokenCommand,
  ...subscribing,
}

const url = ['--callback-url', 'https://app.example.com/n']
const type = ['--type', 'cxScoreUpdated']
const user = ['--user', 'alice']
const subscription = ['--type', 'behavioral', '--user', 'alice', ...url]
const page = ['--page-url', 'http://127.0.0.1:2/x/']

/** Each of these calls cannot work. */
const mistakes: Readonly<Record<string, readonly (readonly string[])[]>> = {
  emulator: [
    ['--state', ''],
    ['--prot', '1'],
    ['start'],
    ['--port'],
    ['--json=no'],
    ['--state', '--json'],
    ['--port', 'x'],
    ['--port', '65536'],
    ['--page-port', '80a'],
    ['--host', 'no host'],
    ['--callback-ca', '/nowhere/ca.pem'],
    ['--callback-ca', 'package.json'],
  ],
  notify: [
    ['--state', 'x', '--typ', 'y'],
    [...user, ...page],
    [...type, ...page],
    [...type, ...user, '--page-url', 'https://example.com/'],
    [...type, ...user, ...page],
  ],
  check: [
    ['--secret', 'token=@x', '--secret', ''],
    ['-x'],
    ['--dotenv', '/nowhere/.env'],
    ['--callback-url', 'http://app.example.com/n'],
    url,
    ['--secret', 'token=@x'],
    [...url, '--secret', 'token=abc'],
    [...url, '--secret', 'abc'],
    [...url, '--secret', 'token=@/nowhere/x'],
    [...url, '--secret', 'token=@package.json'],
    [...url, '--secret', 'token=env:UNSET'],
    [...url, '--secret', 'token=env:EMPTY'],
    [...url, '--secret', 'token=env:SECRET', '--callback-ca', 'package.json'],
    [...url, '--secret', 'token=env:SECRET', '--secret', 'Token=env:SECRET'],
    ['stray'],
    ['--lifecycle', '--username', 'alice'],
    ['--lifecycle', ...url],
    ['--callback-url', 'https://app.example.com/n#top'],
    ['--callback-url', 'https://app.example.com'],
  ],
  token: [['abc'], ['--dotenv', '/nowhere/.env'], []],
  subscribe: [
    ['--user', 'alice', ...url],
    ['--type', 'behavioral', ...url],
    ['--type', 'behavioral', '--user', 'alice'],
    ['--type', 'cxScoreUpdated,x', '--user', 'alice,alice', '--callback-url', 'http://app.example.com/n'],
    ['--type', 'behavioral', '--user', 'alice', '--callback-url', 'http://127.0.0.1:3000/n'],
    [...subscription, '--parameter', 'token=hush'],
    [...subscription, '--parameter', 'token=env:UNSET'],
    [...subscription, '--parameter', 'token=env:EMPTY'],
    [...subscription, '--parameter', 'username=env:SECRET'],
  ],
  update: [
    [],
    ['7'],
    ['7', '8', '--parameter', 'token=env:SECRET'],
    ['7', '--parameter', 'username=env:SECRET'],
  ],
  unsubscribe: [[], ['seven'], ['007'], ['7', '8'], ['99999999999999999999'], ['7', '--force']],
}

const incomplete = { EMPTY: '', SECRET: 'hush' }
/** Of a service that nothing may reach. */
const complete = {
  ...incomplete,
  NOTIFICATION_BASE_URL: 'https://notifications.invalid',
  NOTIFICATION_USERNAME: 'service-user',
  NOTIFICATION_PASSWORD: 'hush',
}

test('a call that cannot work is one sentence and exit code 2', async () => {
  const folder = await folderOfTest()
  const sentences: string[] = []
  for (const [name, command] of Object.entries(commands)) {
    const calls = [...(mistakes[name] ?? [])]
    if (name === 'notify') calls.push([...type, ...user, '--state', folder])
    for (const args of calls) {
      const { code, stdout, stderr } = await call(command, args, name in subscribing ? complete : incomplete)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/^\S.*$/)
      sentences.push(`${name} ${args.join(' ')}\n  ${stderr}\n`)
    }
  }
  const text = sentences.join('\n').replaceAll(folder, '<folder>').replaceAll(join(process.cwd(), '/'), '')
  // Read this file as a whole after a change.
  await expect(text).toMatchFileSnapshot('../messages/command-line.txt')
})

test.each(Object.entries(commands))('%s --help fits 120 columns', (_, { help }) => {
  expect(Math.max(...help.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(120)
})
