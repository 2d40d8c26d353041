import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { Agent } from 'undici'
import { describe, expect, vi } from 'vitest'
import { emulatorCommand } from '../../src/cli/emulator.js'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { createCertificate } from '../support/certificates.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { testWith } from '../support/test-with.js'
import { call, type RunningEmulator, run, start, startEmulatorCommand } from './support.js'

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

const stateIn = async (folder: string) => JSON.parse(await readFile(join(folder, 'state.json'), 'utf8'))

describe('notification-subscriber emulator', () => {
  test('prints the lines for .env and the page, then one line for each event, and ends in order at Ctrl-C', async () => {
    const running = await start(['emulator'])
    await running.line(/^Ctrl-C/)
    const env = parseEnv(running.lines.filter((line) => /^[A-Z_]+=/.test(line)).join('\n'))
    expect(env).toEqual({
      NOTIFICATION_BASE_URL: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
      NOTIFICATION_AUTH_URL: env.NOTIFICATION_BASE_URL,
      NOTIFICATION_DOMAIN: 'emulator',
      NOTIFICATION_CLIENT_ID: 'emulator-client',
      NOTIFICATION_CLIENT_SECRET: expect.stringMatching(/^[\w-]{32}$/),
      NOTIFICATION_CA_FILE: expect.stringMatching(/^\/.*ca\.pem$/),
      CALLBACK_TOKEN: expect.stringMatching(/^[\w-]{32}$/),
    })
    const [, pageUrl] = /^Page: +(\S+)$/.exec(await running.line(/^Page:/)) ?? []
    expect((await fetch(pageUrl ?? '')).status).toBe(200)
    const ca = await readFile(env.NOTIFICATION_CA_FILE ?? '', 'utf8')
    const dispatcher = new Agent({ connect: { ca } })
    await dispatcher.request({ origin: `${env.NOTIFICATION_BASE_URL}`, path: '/no?secret=1', method: 'GET' })
    await dispatcher.close()
    expect(await running.line(/request/)).toMatch(
      /^\d\d:\d\d:\d\d {2}request {3}GET {2}\/no\?… {2}404 {2}\d+ ms, not_found$/,
    )
    // npx passes on the signal of a terminal: it arrives twice.
    running.child.kill('SIGINT')
    running.child.kill('SIGINT')
    const { code, stdout, stderr } = await running.finished
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.split('\n').slice(-2)).toEqual([
      'Ctrl-C: closing the emulator, its page and all connections …',
      'Closed.',
    ])
    expect(existsSync(env.NOTIFICATION_CA_FILE ?? '')).toBe(false)
  })

  test('with --json each line is an object, from listening to closed, without a secret but the first', async () => {
    await using emulator = await startEmulatorCommand()
    expect(emulator.listening).toEqual({
      event: 'listening',
      baseUrl: expect.stringMatching(/^https:/),
      authUrl: emulator.listening.baseUrl,
      domain: 'emulator',
      clientId: 'emulator-client',
      clientSecret: expect.any(String),
      caFile: expect.any(String),
      callbackToken: expect.any(String),
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

  test('with --write-env the variables are in the file and not on the terminal', async (folder) => {
    const file = join(folder.path, 'emulator.env')
    const running = await start(['emulator', '--write-env', file])
    await running.line(/^Ctrl-C/)
    const env = parseEnv(await readFile(file, 'utf8'))
    running.child.kill('SIGINT')
    const { stdout } = await running.finished
    for (const secret of [env.NOTIFICATION_CLIENT_SECRET, env.CALLBACK_TOKEN]) {
      expect(secret).toMatch(/^[\w-]{32}$/)
      expect(stdout).not.toContain(secret)
    }
    expect(stdout).toContain(`node --env-file=${file} app.mjs`)
  })

  test('a signal while it starts ends it in order, too', async (folder) => {
    const running = await start(['emulator'], { env: { TMPDIR: folder.path } })
    const isStarting = async () =>
      (await readdir(folder.path)).some((name) => name.startsWith('notification-'))
    await vi.waitUntil(isStarting, { interval: 1, timeout: 30_000 })
    running.child.kill('SIGINT')
    const { code, stderr } = await running.finished
    expect([code, stderr, await isStarting()]).toEqual([0, '', false])
  })

  test('a reader that goes away ends it in order', async (folder) => {
    const running = await start(['emulator', '--json', '--state', folder.path])
    const { baseUrl, caFile } = JSON.parse(await running.line(/listening/))
    running.child.stdout?.destroy()
    const dispatcher = new Agent({ connect: { ca: await readFile(caFile, 'utf8') } })
    // The line that this would print finds no reader.
    await dispatcher.request({ origin: baseUrl, path: '/', method: 'GET' })
    await dispatcher.destroy()
    const { code, stderr } = await running.finished
    expect([code, stderr]).toEqual([0, ''])
    expect(await stateIn(folder.path)).not.toHaveProperty('pageUrl')
  })
})

describe('notification-subscriber emulator --state', () => {
  test('keeps port, credentials, token and certificate, and not the address of the page', async (folder) => {
    let first: RunningEmulator['listening']
    {
      await using emulator = await startEmulatorCommand('--state', folder.path)
      first = emulator.listening
      expect(await stateIn(folder.path)).toHaveProperty('pageUrl', first.pageUrl)
    }
    expect(await stateIn(folder.path)).not.toHaveProperty('pageUrl')
    expect((await readdir(folder.path)).sort()).toEqual(['ca.pem', 'state.json'])
    const texts = await Promise.all(
      ['ca.pem', 'state.json'].map((file) => readFile(join(folder.path, file), 'utf8')),
    )
    // One private key, between two lines: that of the authority is not kept.
    expect(texts.join('').match(/PRIVATE KEY-----/g)).toHaveLength(2)
    await using emulator = await startEmulatorCommand('--state', folder.path)
    expect({ ...emulator.listening, pageUrl: '' }).toEqual({ ...first, pageUrl: '' })
    expect(emulator.listening.pageUrl).not.toBe(first.pageUrl)
    expect(await readFile(first.caFile, 'utf8')).toBe(texts[0])
    await subscribe(emulator)
  })

  test('a certificate that ends within a week is made anew', async (folder) => {
    const { tls, ca } = createCertificate({ validUntil: Date.now() + 6 * 24 * 60 * 60 * 1000 })
    const earlier = { port: 0, clientSecret: 'kept', password: 'kept, too', callbackToken: 'kept', tls, ca }
    await writeFile(join(folder.path, 'state.json'), JSON.stringify(earlier))
    await using emulator = await startEmulatorCommand('--state', folder.path)
    expect(emulator.listening.clientSecret).toBe('kept')
    expect(await readFile(join(folder.path, 'ca.pem'), 'utf8')).not.toBe(ca)
    await subscribe(emulator)
  })

  test('a folder that an emulator uses is refused, but not one whose emulator was killed', async (folder) => {
    const first = await startEmulatorCommand('--state', folder.path)
    const refused = await run(['emulator', '--state', folder.path])
    expect([refused.code, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain(first.listening.pageUrl)
    first.child.kill('SIGKILL')
    await first.finished
    expect(await stateIn(folder.path)).toHaveProperty('pageUrl')
    await using second = await startEmulatorCommand('--state', folder.path)
    expect(second.listening.clientSecret).toBe(first.listening.clientSecret)
  })
})

describe('what cannot work is one sentence and exit code 2', () => {
  test.for(['/nowhere', '/dev/null'])('the temporary folder %s', async (_folder, TMPDIR) => {
    vi.stubEnv('TMPDIR', TMPDIR)
    const { code, stdout, stderr } = await call(emulatorCommand, [])
    vi.unstubAllEnvs()
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^\S.*TMPDIR/)
  })

  test.for(['--port', '--page-port'])('%s that is taken', async (_folder, flag) => {
    await using other = await startEmulator()
    const { port } = new URL(other.baseUrl)
    const { code, stdout, stderr } = await run(['emulator', flag, port])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(`${flag} ${port} of 127.0.0.1 is taken: choose another, or 0 for any free one\n`)
  })

  const { tls, ca } = createLoopbackCertificate()
  const other = createLoopbackCertificate()
  test.for([
    ['the key of another certificate', { tls: { ...tls, key: other.tls.key }, ca }],
    ['an authority that is none', { tls, ca: '-----BEGIN CERTIFICATE-----' }],
  ])('a state.json with %s', async (folder, [, certificate]) => {
    const file = join(folder.path, 'state.json')
    const state = { port: 0, clientSecret: 'a', password: 'b', callbackToken: 'c', ...certificate }
    await writeFile(file, JSON.stringify(state))
    const { code, stdout, stderr } = await run(['emulator', '--state', folder.path])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^\S.*\n$/)
    expect(stderr).toContain(file)
  })
})
