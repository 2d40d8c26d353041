/** A program that forgets to close its client, in a process of its own. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startEmulator } from 'notification-subscriber/emulator'
import { expect, test } from 'vitest'
import { environmentOf } from '../support/emulator-environment.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const run = promisify(execFile)
const program = fileURLToPath(new URL('programs/forgets-to-close.ts', import.meta.url))

test('it ends by itself, and undici is loaded by its first request only', async () => {
  await using emulator = await startEmulator()
  await using folder = await temporaryFolder()
  const env = { ...process.env, ...(await environmentOf(emulator, folder.path)) }
  // The time limit ends a process that hangs, which then rejects.
  const { stdout } = await run(process.execPath, ['--import', 'tsx', program], { env, timeout: 50_000 })
  expect(JSON.parse(stdout)).toEqual({ loadedByImport: false, loadedByRequest: true })
  expect(emulator.subscriptions).toHaveLength(1)
})
