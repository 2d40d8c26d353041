/** The command line of the installed package, called as a user calls it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { run } from './support/run.js'

const bare = inject('bare')

function npx(...args: readonly string[]): Promise<string> {
  // Never a command that npm would have to fetch.
  return run('npx', ['notification-subscriber', ...args], bare, { npm_config_yes: 'false' })
}

test('npx finds the command, which prints its help and its version', async () => {
  expect(await npx('--help')).toContain('Usage: notification-subscriber [options] [command]')
  const manifest = await readFile(join(bare, 'node_modules/notification-subscriber/package.json'), 'utf8')
  expect(await npx('--version')).toContain(`${JSON.parse(manifest).version}\n`)
})
