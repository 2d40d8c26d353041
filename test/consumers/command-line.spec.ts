/** The command line of the installed package, called as a user calls it. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, inject, test } from 'vitest'
import { run, start } from './support/run.js'

const bare = inject('bare')

function npx(args: readonly string[], variables?: Record<string, string>): Promise<string> {
  // Never a command that npm would have to fetch.
  return run('npx', ['notification-subscriber', ...args], bare, { npm_config_yes: 'false', ...variables })
}

test('npx finds the command, which prints its help and its version', async () => {
  expect(await npx(['--help'])).toContain('Usage: notification-subscriber [options] [command]')
  const manifest = await readFile(join(bare, 'node_modules/notification-subscriber/package.json'), 'utf8')
  expect(await npx(['--version'])).toContain(`${JSON.parse(manifest).version}\n`)
})

test('the emulator says where it listens, a check against it passes or fails by the secret, and SIGTERM ends it', async () => {
  // What npx calls, without npx: that does not hand on every signal.
  const emulator = start(
    join(bare, 'node_modules/.bin/notification-subscriber'),
    ['emulator', '--json'],
    bare,
  )
  const ended = once(emulator, 'close')
  const lines: string[] = []
  const output = createInterface({ input: emulator.stdout }).on('line', (line) => lines.push(line))
  await once(output, 'line')
  const { event, baseUrl, authUrl, domain, clientId, clientSecret, caFile } = JSON.parse(lines[0] ?? '')
  expect(event).toBe('listening')
  const variables = {
    NOTIFICATION_BASE_URL: baseUrl,
    NOTIFICATION_AUTH_URL: authUrl,
    NOTIFICATION_DOMAIN: domain,
    NOTIFICATION_CLIENT_ID: clientId,
    NOTIFICATION_CLIENT_SECRET: clientSecret,
    NOTIFICATION_CA_FILE: caFile,
    // A proxy of this machine has no way to the loopback of the test.
    NO_PROXY: '127.0.0.1',
  }
  try {
    const passed = await npx(['check'], variables)
    expect(passed).toContain('No step failed.')
    expect(passed).not.toContain('✘')
    const failed = npx(['check'], { ...variables, NOTIFICATION_CLIENT_SECRET: 'another' })
    await expect(failed).rejects.toThrow(/✘ Token: .*401/)
    await expect(failed).rejects.toThrow('steps failed.')
  } finally {
    emulator.kill('SIGTERM')
  }
  expect(await ended).toEqual([0, null])
  expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ event: 'closed' })
})
