import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { run, runInShell, start } from './support.js'

test('--version is that of the package', async () => {
  expect(await run(['--version'])).toEqual({ code: 0, stdout: manifest.version, stderr: '' })
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
