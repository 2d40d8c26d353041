import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startEmulator } from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Runs a TypeScript program as a process of its own; rejects if it fails or does not end by itself. */
const program = (file: string, nodeOptions: string[] = [], env: Record<string, string> = {}) =>
  run(process.execPath, [...nodeOptions, '--import', 'tsx', join(root, file)], {
    cwd: root,
    timeout: 50_000,
    env: { ...process.env, ...env },
  })

describe('programs that end by themselves', () => {
  test('a script that forgets close() exits, and undici is loaded by its first request only', async () => {
    await using emulator = await startEmulator()
    const folder = await mkdtemp(join(tmpdir(), 'notification-subscriber-'))
    try {
      const ca = join(folder, 'ca.pem')
      await writeFile(ca, emulator.ca)
      const { stdout } = await program('test/integration/programs/forgets-to-close.ts', [], {
        NODE_EXTRA_CA_CERTS: ca,
        NO_PROXY: '127.0.0.1',
        NOTIFICATION_BASE_URL: emulator.baseUrl,
        NOTIFICATION_AUTH_URL: emulator.authUrl,
        NOTIFICATION_DOMAIN: emulator.domain,
        NOTIFICATION_CLIENT_ID: emulator.clientId,
        NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
      })
      expect(JSON.parse(stdout)).toEqual({ loadedByImport: false, loadedByRequest: true })
      expect(emulator.subscriptions).toHaveLength(1)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
