import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import { expect, test } from 'vitest'
import { expectPage } from '../../support/message-page.js'
import { run } from '../support.js'
import { checkFixture, serve } from './support.js'

const fixture = checkFixture()

test('everything right is a tick for each step, and exit code 0', async () => {
  const { emulator, folder } = fixture
  const receiver = new DeliveryReceiver({ secrets: { token: 'hush-1' }, logger: false })
  await using app = await serve(toNodeHandler(receiver), emulator.tls)
  const flags = ['--callback-url', app.url, '--secret', `token=@${join(folder, 'token')}`]
  const lifecycle = ['--lifecycle', '--username', 'alice']
  const { code, stdout, stderr } = await run(['check', ...flags, ...lifecycle], {
    env: fixture.environment(),
  })
  expect([code, stderr]).toEqual([0, ''])
  const text = stdout
    .replaceAll(emulator.baseUrl, '<base URL>')
    .replaceAll(new URL(emulator.baseUrl).host, '<host>')
    .replace(/\d{4}-\d\d-\d\d/, '<date>')
    .replace(/\d+(\.\d+)? m?s/g, '<duration>')
  await expectPage('check-that-passes', { 'everything right': text })
  expect(emulator.subscriptions).toEqual([])
})

test('the variables can come from a file, and the environment goes before it', async () => {
  const file = join(fixture.folder, 'dot.env')
  const lines = Object.entries(
    fixture.environment({ NOTIFICATION_DOMAIN: 'overridden', NOTIFICATION_SCOPE: 'all' }),
  )
  await writeFile(file, lines.map(([name, value]) => `${name}='${value}'\n`).join(''))
  const { steps } = await fixture.check(['--dotenv', file], { NOTIFICATION_DOMAIN: 'emulator' })
  expect(steps[2]).toMatchObject({
    name: 'Token',
    outcome: 'passed',
    iss: `${fixture.emulator.authUrl}/auth/realms/emulator`,
    azp: 'emulator-client',
    exp: expect.any(Number),
    scope: 'all',
  })
})
