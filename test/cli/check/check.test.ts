import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import { expect, test } from 'vitest'
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
  expect(text).toMatchInlineSnapshot(`
    "✔ Configuration: <base URL>, domain emulator
    ✔ DNS and TLS of <host>: 127.0.0.1; TLSv1.3, its certificate is valid until <date>
    ✔ Token: iss <base URL>/auth/realms/emulator, azp emulator-client, expires in 60 minutes, scope none
    ✔ Authorization: the service accepts the credentials: POST /api/subscriptions without any field is answered 400, and 401 with a made-up token
    ✔ Callback without the secret: refused with 401 in <duration>
    ✔ Callback with the secret: accepted with 204 in <duration>
    ? Callback certificate: cannot be proven here: whether the service trusts the certificate: only the certificates that you name do
      → The service must trust it, too: use a certificate of a public authority, or ask the operator of the service
    ? Subscriptions: cannot be proven here: whether a subscription of yours has ended, and which secret it sends: the service ends it after three failed callbacks in a row, and no call lists it
      → Run subscribe without --recreate-if-exists: 409 means still active, 201 means that it had ended and is active again. Its secret is set by update ID --parameter
    ✔ Create: answered 201 with subscription 1, as documented
    ✔ Duplicate: answered 409, as documented
    ✔ Overlap with recreateIfExists: answered 409, as documented
    ✔ Recreate: answered 201 with subscription 2, as documented
    ✔ Update: answered 200, as documented †
    ✔ Unsubscribe: answered 204, as documented †
    ✔ Unsubscribe the replaced one: answered 404, as documented †
    ✔ Clean-up: every subscription of this check was unsubscribed
    † documented on the service's public developer pages, not in its interface document

    No step failed; 2 cannot be proven here."
  `)
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
