/** A program that forgets to close its client, in a process of its own. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { startEmulator } from 'notification-subscriber/emulator'
import { expect, test } from 'vitest'
import { environmentOf } from '../support/emulator-environment.js'
import { subscription } from '../support/fake-service.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const program = `
import { NotificationClient } from './src/index.js'

const undiciIsLoaded = () => Reflect.has(globalThis, Symbol.for('undici.globalDispatcher.1'))
const loadedByImport = undiciIsLoaded()
await NotificationClient.fromEnv().createSubscription(${JSON.stringify(subscription)})
console.log(JSON.stringify({ loadedByImport, loadedByRequest: undiciIsLoaded() }))
`

test('it ends by itself, and undici is loaded by its first request only', async () => {
  await using emulator = await startEmulator()
  await using folder = await temporaryFolder()
  const env = { ...process.env, ...(await environmentOf(emulator, folder.path)) }
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program]
  // The time limit ends a process that hangs, which then rejects.
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 50_000 })
  expect(JSON.parse(stdout)).toEqual({ loadedByImport: false, loadedByRequest: true })
  expect(emulator.subscriptions).toHaveLength(1)
})
