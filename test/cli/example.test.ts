import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { freePort } from '../support/listen.js'
import { run, startEmulatorCommand, temporaryFolder } from './support.js'

const example = fileURLToPath(new URL('../../examples/develop-with-emulator.mts', import.meta.url))

test('examples/develop-with-emulator.mts works with an emulator in another terminal, by the printed environment', async () => {
  await using folder = await temporaryFolder()
  const state = join(folder.path, 'state')
  await using emulator = await startEmulatorCommand('--allow-insecure-loopback', '--state', state)
  const port = await freePort()
  const app = spawn(process.execPath, ['--import', 'tsx', example], {
    env: { ...emulator.env, PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(app, 'close')
  const lines: string[] = []
  createInterface({ input: app.stdout }).on('line', (line) => lines.push(line))
  await vi.waitFor(() => expect(lines).toHaveLength(2), { timeout: 100_000 })
  const notify = ['notify', '--state', state, '--type', 'lowEnergyAgentOpened', '--user', 'alice']
  expect(await run(notify)).toMatchObject({ code: 0, stderr: '' })
  app.kill('SIGINT')
  expect(await ended).toEqual([0, null])
  expect(lines).toEqual([
    `Subscription 1: notifications of alice come to http://127.0.0.1:${port}/notifications. Ctrl-C ends this app. Next:`,
    '  npx notification-subscriber notify --state .emulator --type lowEnergyAgentOpened --user alice',
    `Subscription 1: lowEnergyAgentOpened {"callId":"call-1","username":"alice","bTime":21648,"nTime":35912,"idx":0}`,
    expect.stringMatching(/^Unsubscribed\. Next/),
  ])
  await emulator.line(/"reason":"unsubscribed"/)
})
