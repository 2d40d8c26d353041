import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startEmulator } from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import { environmentOf } from '../support/emulator-environment.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Runs a TypeScript program as a process of its own; rejects if it fails or does not end by itself. */
const program = (file: string, env: Record<string, string>) =>
  run(process.execPath, ['--import', 'tsx', join(root, file)], {
    cwd: root,
    timeout: 50_000,
    env: { ...process.env, ...env },
  })

describe('programs that end by themselves', () => {
  test('a script that forgets close() exits, and undici is loaded by its first request only', async () => {
    await using emulator = await startEmulator()
    await using folder = await temporaryFolder()
    const env = await environmentOf(emulator, folder.path)
    const { stdout } = await program('test/integration/programs/forgets-to-close.ts', env)
    expect(JSON.parse(stdout)).toEqual({ loadedByImport: false, loadedByRequest: true })
    expect(emulator.subscriptions).toHaveLength(1)
  })
})
