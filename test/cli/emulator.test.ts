import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { Agent } from 'undici'
import { describe, expect } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { createCertificate } from '../support/certificates.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { testWith } from '../support/test-with.js'
import { newState, type RunningEmulator, run, start, startEmulatorCommand } from './support.js'

const test = testWith(temporaryFolder)

async function subscribe({ listening }: RunningEmulator): Promise<number> {
  const { baseUrl, authUrl, domain, clientId, clientSecret, caFile } = listening
  await using client = new NotificationClient({
    baseUrl,
    auth: { authUrl, domain, clientId, clientSecret },
    ca: await readFile(caFile, 'utf8'),
  })
  const { subscriptionId } = await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl: 'https://localhost:1/n?key=hush',
    parameters: { token: 'hush' },
  })
  return subscriptionId
}

describe('notification-subscriber emulator', () => {
  test('writes the variables for an app, prints the page and a line for each event, and ends in order at Ctrl-C', async ({
    path,
  }) => {
    const running = await start(['emulator', '--state', path])
    await running.line(/^Ctrl-C/)
    const [, envFile = ''] = /--env-file=(\S+)/.exec(await running.line(/^Your app:/)) ?? []
    const env = parseEnv(await readFile(envFile, 'utf8'))
    expect(env).toEqual({
      NOTIFICATION_BASE_URL: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
      NOTIFICATION_AUTH_URL: env.NOTIFICATION_BASE_URL,
      NOTIFICATION_DOMAIN: 'emulator',
      NOTIFICATION_CLIENT_ID: 'emulator-client',
      NOTIFICATION_CLIENT_SECRET: expect.stringMatching(/^[\w-]{32}$/),
      NOTIFICATION_CA_FILE: join(path, 'ca.pem'),
      CALLBACK_TOKEN: expect.stringMatching(/^[\w-]{32}$/),
    })
    const [, pageUrl] = /^Page: +(\S+)$/.exec(await running.line(/^Page:/)) ?? []
    expect((await fetch(pageUrl ?? '')).status).toBe(200)
    const dispatcher = new Agent({ connect: { ca: await readFile(join(path, 'ca.pem'), 'utf8') } })
    await dispatcher.request({ origin: `${env.NOTIFICATION_BASE_URL}`, path: '/no?secret=1', method: 'GET' })
    await dispatcher.close()
    expect(await running.line(/request/)).toMatch(
      /^\d\d:\d\d:\d\d {2}request {3}GET {2}\/no\?… {2}404 {2}\d+ ms, not_found$/,
    )
    running.child.kill('SIGINT')
    const { code, stdout, stderr } = await running.finished
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.split('\n').slice(-2)).toEqual([
      'Ctrl-C: closing the emulator, its page and all connections …',
      'Closed.',
    ])
    for (const secret of [env.NOTIFICATION_CLIENT_SECRET, env.CALLBACK_TOKEN])
      expect(stdout).not.toContain(secret)
    for (const file of await readdir(path)) expect((await stat(join(path, file))).mode & 0o777).toBe(0o600)
  })

  test('with --json each line is an object, from listening to closed, without a secret but the first', async ({
    path,
  }) => {
    await using emulator = await startEmulatorCommand(path)
    expect(emulator.listening).toMatchObject({
      event: 'listening',
      baseUrl: expect.stringMatching(/^https:/),
      authUrl: emulator.listening.baseUrl,
      domain: 'emulator',
      pageUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/$/),
    })
    const subscriptionId = await subscribe(emulator)
    emulator.child.kill('SIGTERM')
    expect((await emulator.finished).code).toBe(0)
    expect(emulator.events()).toMatchObject([
      { event: 'request', operation: 'token', status: 200 },
      { event: 'created', subscriptionId },
      { event: 'request', operation: 'create', status: 201 },
      { event: 'closed' },
    ])
    expect(emulator.lines.slice(1).join('\n')).not.toContain(emulator.listening.clientSecret)
  })

  test('a reader that goes away ends it in order', async ({ path }) => {
    const running = await start(['emulator', '--json', '--state', path])
    const { baseUrl, caFile } = JSON.parse(await running.line(/listening/))
    running.child.stdout?.destroy()
    const dispatcher = new Agent({ connect: { ca: await readFile(caFile, 'utf8') } })
    // The line that this would print finds no reader.
    await dispatcher.request({ origin: baseUrl, path: '/', method: 'GET' })
    await dispatcher.destroy()
    const { code, stderr } = await running.finished
    expect([code, stderr]).toEqual([0, ''])
  })

  test('the next start has the port, the credentials and the certificate of the last, and another page', async ({
    path,
  }) => {
    let first: RunningEmulator['listening']
    {
      await using emulator = await startEmulatorCommand(path)
      first = emulator.listening
      // One private key, between two lines: that of the authority is not kept.
      expect((await readFile(join(path, 'state.json'), 'utf8')).match(/PRIVATE KEY-----/g)).toHaveLength(2)
      const other = await run(['emulator', '--state', path])
      expect([other.code, other.stderr]).toEqual([
        2,
        expect.stringMatching(/^--port \d+ .*is taken.*--state/),
      ])
    }
    await using emulator = await startEmulatorCommand(path)
    expect({ ...emulator.listening, pageUrl: '' }).toEqual({ ...first, pageUrl: '' })
    expect(emulator.listening.pageUrl).not.toBe(first.pageUrl)
    await subscribe(emulator)
  })

  test('a certificate that ends within a week is made anew, and so is a state that cannot be read', async ({
    path,
  }) => {
    const { tls, ca } = createCertificate({ validUntil: Date.now() + 6 * 24 * 60 * 60 * 1000 })
    const file = join(path, 'state.json')
    await writeFile(file, JSON.stringify({ ...newState(), port: 0, clientSecret: 'kept', tls, ca }))
    {
      await using emulator = await startEmulatorCommand(path)
      expect(emulator.listening.clientSecret).toBe('kept')
      expect(await readFile(join(path, 'ca.pem'), 'utf8')).not.toBe(ca)
      await subscribe(emulator)
    }
    await writeFile(file, '{}')
    await using emulator = await startEmulatorCommand(path)
    expect(emulator.listening.clientSecret).not.toBe('kept')
  })

  test.for(['--port', '--page-port'])(
    '%s that is taken is one sentence and exit code 2',
    async ({ path }, flag) => {
      await using other = await startEmulator()
      const { port } = new URL(other.baseUrl)
      const { code, stdout, stderr } = await run(['emulator', '--state', path, flag, port])
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(new RegExp(`^${flag} ${port} of 127\\.0\\.0\\.1 is taken: .*\n$`))
    },
  )

  test('a state with the key of another certificate is named', async ({ path }) => {
    const state = { ...newState(), port: 0 }
    const file = join(path, 'state.json')
    await writeFile(
      file,
      JSON.stringify({ ...state, tls: { ...state.tls, key: createLoopbackCertificate().tls.key } }),
    )
    const { code, stderr } = await run(['emulator', '--state', path])
    expect([code, stderr]).toEqual([2, expect.stringContaining(file)])
  })
})
