import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { parseEnv } from 'node:util'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { Agent } from 'undici'
import { expect } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { testWith } from '../support/test-with.js'
import { call, start } from './support.js'

const test = testWith(temporaryFolder)

test('writes the variables for an app, says what comes next, prints a line for each event, and ends at Ctrl-C', async ({
  path,
}) => {
  const folder = join(path, 'new')
  const running = await start(['emulator', '--state', folder])
  const first = await running.line(/Next/)
  const env = parseEnv(await readFile(join(folder, 'env'), 'utf8'))
  expect(first).toBe(
    `The emulator is running at ${env.NOTIFICATION_BASE_URL}, and wrote ${folder}/env. Next: node --env-file=${folder}/env app.mjs`,
  )
  expect(env).toEqual({
    NOTIFICATION_BASE_URL: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
    NOTIFICATION_AUTH_URL: env.NOTIFICATION_BASE_URL,
    NOTIFICATION_DOMAIN: 'emulator',
    NOTIFICATION_CLIENT_ID: 'emulator-client',
    NOTIFICATION_CLIENT_SECRET: expect.stringMatching(/^[\w-]{32}$/),
    NOTIFICATION_CA_FILE: join(folder, 'ca.pem'),
    CALLBACK_TOKEN: expect.stringMatching(/^[\w-]{32}$/),
  })
  const [, pageUrl] = /^Its page: (\S+)/.exec(await running.line(/page/)) ?? []
  expect((await fetch(pageUrl ?? '')).status).toBe(200)
  const dispatcher = new Agent({ connect: { ca: await readFile(join(folder, 'ca.pem'), 'utf8') } })
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
  // One private key, between two lines: that of the authority is not kept.
  expect((await readFile(join(folder, 'state.json'), 'utf8')).match(/PRIVATE KEY-----/g)).toHaveLength(2)
  const files = await readdir(folder)
  expect(files.sort()).toEqual(['.gitignore', 'ca.pem', 'env', 'state.json'])
  expect(await readFile(join(folder, '.gitignore'), 'utf8')).toBe('*\n')
  for (const file of files) expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600)
})

test('a second one in the folder is refused, and the next after a kill has port, credentials and certificate of the last', async ({
  path,
}) => {
  const first = await start(['emulator', '--json', '--state', relative('', path)])
  const { pageUrl, ...addresses } = JSON.parse(await first.line(/"listening"/))
  const second = await call(['emulator', '--state', path, '--port', '0'])
  expect(second).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining(`running with ${path} already`),
  })
  first.child.kill('SIGKILL')
  await first.ended

  const next = await start(['emulator', '--json', '--state', path])
  const listening = JSON.parse(await next.line(/"listening"/))
  expect(listening).toEqual({ ...addresses, pageUrl: expect.not.stringMatching(`^${pageUrl}$`) })
  const { baseUrl, authUrl, domain, clientId, clientSecret, caFile } = listening
  const auth = { authUrl, domain, clientId, clientSecret }
  await using client = new NotificationClient({ baseUrl, auth, ca: await readFile(caFile, 'utf8') })
  const { subscriptionId } = await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl: 'https://localhost:1/n?key=hush',
    parameters: { token: 'hush' },
  })
  next.child.kill('SIGTERM')
  expect((await next.finished).code).toBe(0)
  const [, ...events] = next.lines
  expect(events.map((line) => JSON.parse(line))).toMatchObject([
    { event: 'request', operation: 'token', status: 200 },
    { event: 'created', subscriptionId },
    { event: 'request', operation: 'create', status: 201 },
    { event: 'closed' },
  ])
  for (const secret of ['hush', clientSecret]) expect(events.join()).not.toContain(secret)
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

test.for(['--port', '--page-port'])(
  '%s that is taken is one sentence and exit code 2',
  async ({ path }, flag) => {
    await using other = await startEmulator()
    const { port } = new URL(other.baseUrl)
    const { code, stdout, stderr } = await call(['emulator', '--state', path, flag, port])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(new RegExp(`^${flag} ${port} of 127\\.0\\.0\\.1 is taken: .*$`))
  },
)
