import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { run, runInShell, start } from './support.js'

describe('the command line', () => {
  test('--version is that of the package', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: manifest.version, stderr: '' })
  })

  test.each([[[]], [['--help']], [['help']]])('%j names every command', async (args) => {
    const { code, stdout, stderr } = await run(args)
    expect([code, stderr]).toEqual([0, ''])
    for (const command of ['emulator', 'notify', 'check', 'token', 'subscribe', 'update', 'unsubscribe']) {
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
    }
  })

  test.each([
    ['emulator', 'port host page-port state callback-ca json'],
    ['notify', 'type user category payload state page-url json'],
    ['check', 'dotenv callback-url secret callback-ca lifecycle username json'],
    ['token', 'print-token dotenv json'],
    ['subscribe', 'type user callback-url parameter recreate-if-exists dotenv json'],
    ['update', 'parameter dotenv json'],
    ['unsubscribe', 'dotenv json'],
  ])('%s --help names every flag', async (command, flags) => {
    const { code, stdout, stderr } = await run([command, '--help'])
    expect([code, stderr]).toEqual([0, ''])
    for (const flag of flags.split(' ')) expect(stdout).toMatch(new RegExp(`^  --${flag} `, 'm'))
  })

  const help = 'See: notification-subscriber'
  test.each([
    [['emulate'], `There is no command "emulate" (did you mean "emulator"?). ${help} --help`],
    [['--port', '1'], `There is no command "--port". ${help} --help`],
    [['notify', '--typ', 'y'], `Unknown option '--typ'. ${help} notify --help`],
  ])('%j is one sentence on standard error and exit code 2', async (args, sentence) => {
    expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` })
  })

  test('a reader that goes away changes nothing about the exit code', async () => {
    const check = await start(['check'])
    check.child.stdout?.destroy()
    const { code, stderr } = await check.finished
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^Variables NOTIFICATION_\* are missing.*\n$/)])
  })

  test('a text that could steer the terminal is shown without that', async () => {
    const { code, stderr } = await run(['emulator', '--state', '/dev/null/\u001b[2J\u009b2J'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^[\x20-\x7e\n]*$/)
  })

  // Linux alone has a device that is always full.
  test.skipIf(!existsSync('/dev/full'))('output that is lost is one sentence and exit code 2', async () => {
    const { code, stderr } = await runInShell(['--help'], '> /dev/full')
    expect(code).toBe(2)
    expect(stderr).toMatch(/^The output cannot be written: ENOSPC.*\n$/)
  })

  // The same device.
  test.skipIf(!existsSync('/dev/full'))('the exit code stays where standard error is full', async () => {
    expect((await runInShell(['emulate'], '2> /dev/full')).code).toBe(2)
  })
})
