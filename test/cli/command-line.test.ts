import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { run } from './support.js'

describe('the command line', () => {
  test('--version is that of the package', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: manifest.version, stderr: '' })
  })

  test.each([[[]], [['--help']], [['-h']], [['help']]])('%j names every command', async (args) => {
    const { code, stdout, stderr } = await run(args)
    expect([code, stderr]).toEqual([0, ''])
    for (const command of ['emulator', 'notify', 'check']) {
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
    }
  })

  test.each([
    [
      'emulator',
      ['--port', '--host', '--page-port', '--state', '--callback-ca', '--allow-insecure-loopback'],
    ],
    ['notify', ['--type', '--user', '--category', '--payload', '--state', '--page-url']],
    ['check', ['--dotenv', '--callback-url', '--secret', '--callback-ca', '--callback-timeout-ms']],
  ])('%s --help names every flag, and fits 120 columns', async (command, flags) => {
    const { code, stdout, stderr } = await run([command, '--help'])
    expect([code, stderr]).toEqual([0, ''])
    for (const flag of [...flags, '--json']) expect(stdout).toMatch(new RegExp(`^  ${flag} `, 'm'))
    expect(Math.max(...stdout.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(120)
  })

  const see = (command: string) => `See: notification-subscriber ${command} --help`
  test.each([
    [
      ['emulate'],
      'There is no command "emulate" (did you mean "emulator"?). See: notification-subscriber --help',
    ],
    [['--port', '1'], 'There is no command "--port". See: notification-subscriber --help'],
    [['emulator', '--prot', '1'], `There is no flag --prot (did you mean --port?). ${see('emulator')}`],
    [['emulator', 'start'], `"start" belongs to no flag. ${see('emulator')}`],
    [['emulator', '--port'], `--port needs a value. ${see('emulator')}`],
    [['emulator', '--json=no'], `--json takes no value. ${see('emulator')}`],
    [['emulator', '--state', '--json'], `--state needs a value. ${see('emulator')}`],
    [['check', '-x'], `There is no flag -x. ${see('check')}`],
    [
      ['notify', '--state', 'x', '--typ', 'y'],
      `There is no flag --typ (did you mean --type?). ${see('notify')}`,
    ],
  ])('%j is one sentence and exit code 2', async (args, sentence) => {
    expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` })
  })
})
