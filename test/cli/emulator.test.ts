import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { Agent } from 'undici'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { form, Receiver } from '../emulator/support.js'
import { type RunningEmulator, run, start, startEmulatorCommand, temporaryFolder } from './support.js'

async function clientOf({ listening }: RunningEmulator): Promise<NotificationClient> {
  const { baseUrl, authUrl, domain, clientId, clientSecret, caFile } = listening
  const dispatcher = new Agent({ connect: { ca: await readFile(caFile, 'utf8') }, pipelining: 0 })
  return new NotificationClient({ baseUrl, auth: { authUrl, domain, clientId, clientSecret }, dispatcher })
}

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

describe('notification-subscriber emulator', () => {
  test('prints the lines for .env and the page, then one line for each event, and ends in order at Ctrl-C', async () => {
    const running = await start(['emulator'])
    await running.line(/^Ctrl-C/)
    const env = Object.fromEntries(
      running.lines.flatMap((line) => {
        const [, name, value] = /^(NOTIFICATION_\w+)=(.*)$/.exec(line) ?? []
        return name === undefined ? [] : [[name, value]]
      }),
    )
    expect(env).toEqual({
      NOTIFICATION_BASE_URL: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
      NOTIFICATION_AUTH_URL: env.NOTIFICATION_BASE_URL,
      NOTIFICATION_DOMAIN: 'emulator',
      NOTIFICATION_CLIENT_ID: 'emulator-client',
      NOTIFICATION_CLIENT_SECRET: expect.stringMatching(/^[\w-]{32}$/),
      NOTIFICATION_CA_FILE: expect.stringMatching(/^\/.*ca\.pem$/),
    })
    const [, pageUrl] = /^Page: +(\S+)$/.exec(await running.line(/^Page:/)) ?? []
    expect((await fetch(pageUrl ?? '')).status).toBe(200)
    const ca = await readFile(env.NOTIFICATION_CA_FILE ?? '', 'utf8')
    const dispatcher = new Agent({ connect: { ca } })
    await dispatcher.request({ origin: `${env.NOTIFICATION_BASE_URL}`, path: '/no?secret=1', method: 'GET' })
    await dispatcher.close()
    expect(await running.line(/request/)).toMatch(
      /^\d\d:\d\d:\d\d {2}request {3}GET {2}\/no\?… {2}404 {2}\d+ ms$/,
    )
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
      pageUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/$/),
    })
    await using client = await clientOf(emulator)
    const { subscriptionId } = await client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['alice'],
      callbackUrl: 'https://localhost:1/n?key=hush',
      parameters: { token: 'hush' },
    })
    for (let i = 0; i < 3; i++) {
      await run([
        ...['notify', '--type', 'silenceHighOpened', '--user', 'alice'],
        ...['--page-url', emulator.listening.pageUrl],
      ])
    }
    await emulator.line(/"event":"ended"/)
    emulator.child.kill('SIGTERM')
    expect((await emulator.finished).code).toBe(0)
    const callback = {
      event: 'callback',
      subscriptionId,
      callbackUrl: 'https://localhost:1/n?…',
      error: expect.stringContaining('ECONNREFUSED'),
      durationMs: expect.any(Number),
    }
    const subscription = {
      subscriptionId,
      notificationTypes: ['behavioral'],
      usernames: ['alice'],
      callbackUrl: 'https://localhost:1/n?…',
      parameterNames: ['token'],
    }
    expect(emulator.events()).toEqual([
      expect.objectContaining({ event: 'request', operation: 'token', status: 200 }),
      { event: 'created', ...subscription, consecutiveFailures: 0 },
      expect.objectContaining({ event: 'request', operation: 'create', status: 201 }),
      expect.objectContaining({ ...callback, id: 1 }),
      expect.objectContaining({ ...callback, id: 2 }),
      expect.objectContaining({ ...callback, id: 3 }),
      { event: 'ended', ...subscription, consecutiveFailures: 3, reason: 'three-failures' },
      { event: 'closed' },
    ])
    const afterTheFirst = emulator.lines.slice(1).join('\n')
    expect(afterTheFirst).not.toContain('hush')
    expect(afterTheFirst).not.toContain(emulator.listening.clientSecret)
  })

  test('lines for people have neither secrets nor what would steer a terminal', async () => {
    const running = await start(['emulator', '--allow-insecure-loopback'])
    await using receiver = await Receiver.startInsecure()
    await running.line(/^Ctrl-C/)
    const listening: Record<string, string> = Object.fromEntries(
      running.lines.filter((line) => line.includes('=')).map((line) => line.split('=')),
    )
    const ca = await readFile(listening.NOTIFICATION_CA_FILE ?? '', 'utf8')
    const origin = `${listening.NOTIFICATION_BASE_URL}`
    const dispatcher = new Agent({ connect: { ca } })
    await using client = new NotificationClient({
      baseUrl: origin,
      auth: {
        authUrl: origin,
        domain: `${listening.NOTIFICATION_DOMAIN}`,
        clientId: `${listening.NOTIFICATION_CLIENT_ID}`,
        clientSecret: `${listening.NOTIFICATION_CLIENT_SECRET}`,
      },
      dispatcher,
    })
    // Our own client would not send such a name.
    await dispatcher.request({
      origin,
      path: '/api/subscriptions',
      method: 'POST',
      headers: { authorization: `Bearer ${await client.getAccessToken()}`, 'content-type': form },
      body: new URLSearchParams({
        notification_type: 'call-score',
        username: 'eve\u001b[2J',
        callback_url: `${receiver.url}?key=hush`,
        token: 'hush',
      }).toString(),
    })
    await dispatcher.close()
    const created = await running.line(/created/)
    expect(created).toContain(`1  call-score of eve [2J → ${receiver.url}?…`)
    const pageUrl = (await running.line(/^Page:/)).replace(/^Page: +/, '')
    const notify = ['notify', '--type', 'cxScoreUpdated', '--user', 'eve\u001b[2J', '--page-url', pageUrl]
    expect((await run(notify)).code).toBe(0)
    expect(await running.line(/ callback /)).toMatch(/callback {2}1 → http:\S+\?… {2}204 {2}\d+ ms$/)
    running.child.kill('SIGINT')
    const { stdout } = await running.finished
    expect(stdout).not.toContain('hush')
    expect(stdout).toBe(stripVTControlCharacters(stdout))
  })

  test('colours are for terminals, and not with NO_COLOR', async () => {
    await using folder = await temporaryFolder()
    const running = await start(['emulator', '--state', join(folder.path, 'state')])
    await running.line(/^Ctrl-C/)
    const notify = [
      'notify',
      '--state',
      join(folder.path, 'state'),
      '--type',
      'cxScoreUpdated',
      '--user',
      'x',
    ]
    const { spawnfile, spawnargs } = running.child
    const command = [spawnfile, spawnargs[1], ...notify].map((part) => `'${part}'`).join(' ')
    // script(1) of util-linux runs a command on a terminal of its own.
    const onTerminal = async (env: Record<string, string>) => {
      const script = promisify(execFile)('script', ['-qec', command, '/dev/null'], {
        env: { ...env, TERM: 'xterm' },
      })
      const { stdout } = await script.catch((error: { stdout: string }) => error)
      return stdout
    }
    expect(await onTerminal({})).toContain('\u001b[31m✘\u001b[39m Nothing was sent')
    expect(await onTerminal({ NO_COLOR: '1' })).toMatch(/^✘ Nothing was sent/)
    expect(await onTerminal({ NO_COLOR: '' })).toContain('\u001b[31m')
    expect((await run(notify)).stdout).toMatch(/^✘ Nothing was sent/)
    running.child.kill('SIGINT')
    await running.finished
  })

  test('a second signal does not wait', async () => {
    const running = await start(['emulator'])
    await running.line(/^Ctrl-C/)
    // Both arrive before the event loop turns.
    running.child.kill('SIGSTOP')
    running.child.kill('SIGINT')
    running.child.kill('SIGTERM')
    running.child.kill('SIGCONT')
    expect([0, 130]).toContain((await running.finished).code)
  })

  test('a reader of notify that goes away changes nothing about its end', async () => {
    await using folder = await temporaryFolder()
    const state = join(folder.path, 'state')
    const running = await start(['emulator', '--state', state])
    await running.line(/^Ctrl-C/)
    const notify = await start(['notify', '--state', state, '--type', 'cxScoreUpdated', '--user', 'x'])
    notify.child.stdout?.destroy()
    const { code, stderr } = await notify.finished
    // 1: there is no subscription.
    expect([code, stderr]).toEqual([1, ''])
    running.child.kill('SIGINT')
    await running.finished
  })

  test('a reader that goes away ends it in order', async () => {
    await using folder = await temporaryFolder()
    const state = join(folder.path, 'state')
    const running = await start(['emulator', '--json', '--state', state])
    const { baseUrl } = JSON.parse(await running.line(/listening/))
    running.child.stdout?.destroy()
    const dispatcher = new Agent({ connect: { ca: await readFile(join(state, 'ca.pem'), 'utf8') } })
    // The line that this would print finds nobody.
    await dispatcher.request({ origin: baseUrl, path: '/', method: 'GET' })
    await dispatcher.destroy()
    const { code, stderr } = await running.finished
    expect([code, stderr]).toEqual([0, ''])
    expect(await readdir(state)).not.toContain('running.json')
  })
})

describe('notification-subscriber emulator --state', () => {
  test('keeps port, credentials and certificate, for its owner only', async () => {
    await using folder = await temporaryFolder()
    const state = join(folder.path, 'deep/state')
    let first: RunningEmulator['listening']
    {
      await using emulator = await startEmulatorCommand('--state', state)
      first = emulator.listening
      expect(first.caFile).toBe(join(state, 'ca.pem'))
      expect(await modeOf(state)).toBe('700')
      expect((await readdir(state)).sort()).toEqual(['ca.pem', 'running.json', 'state.json'])
      for (const file of await readdir(state)) expect(await modeOf(join(state, file))).toBe('600')
    }
    expect((await readdir(state)).sort()).toEqual(['ca.pem', 'state.json'])
    const certificate = await readFile(first.caFile, 'utf8')
    await using emulator = await startEmulatorCommand('--state', state)
    expect({ ...emulator.listening, pageUrl: '' }).toEqual({ ...first, pageUrl: '' })
    expect(emulator.listening.pageUrl).not.toBe(first.pageUrl)
    expect(await readFile(first.caFile, 'utf8')).toBe(certificate)
    await using client = await clientOf(emulator)
    await client.getAccessToken()
  })

  test('the key of the authority is nowhere in it', async () => {
    await using folder = await temporaryFolder()
    await using emulator = await startEmulatorCommand('--state', folder.path)
    const texts = await Promise.all(
      (await readdir(folder.path)).map((file) => readFile(join(folder.path, file), 'utf8')),
    )
    expect(texts.join('').match(/PRIVATE KEY-----/g)).toHaveLength(2)
    const { tls } = JSON.parse(await readFile(join(folder.path, 'state.json'), 'utf8'))
    expect(tls.key.match(/PRIVATE KEY-----/g)).toHaveLength(2)
    expect(emulator.listening.caFile).toBe(join(folder.path, 'ca.pem'))
  })

  test.each([
    [6, false],
    [8, true],
  ])('a certificate that ends in %i days is taken again: %s', async (days, isTaken) => {
    await using folder = await temporaryFolder()
    const { tls, ca } = createLoopbackCertificate({ validUntil: Date.now() + days * 24 * 60 * 60 * 1000 })
    const earlier = { port: 0, clientSecret: 'kept', password: 'kept, too', tls, ca }
    await writeFile(join(folder.path, 'state.json'), JSON.stringify(earlier))
    await using emulator = await startEmulatorCommand('--state', folder.path)
    const written = JSON.parse(await readFile(join(folder.path, 'state.json'), 'utf8'))
    expect(written.ca === ca).toBe(isTaken)
    expect(emulator.listening.clientSecret).toBe('kept')
    expect(await modeOf(join(folder.path, 'state.json'))).toBe('600')
    await using client = await clientOf(emulator)
    await client.getAccessToken()
  })

  test('a folder that an emulator uses is refused, but not one whose emulator was killed', async () => {
    await using folder = await temporaryFolder()
    const first = await startEmulatorCommand('--state', folder.path)
    const refused = await run(['emulator', '--state', folder.path])
    expect(refused).toEqual({
      code: 2,
      stdout: '',
      stderr: `--state names ${folder.path}, which an emulator uses already: its page is ${first.listening.pageUrl}\n`,
    })
    first.child.kill('SIGKILL')
    await first.finished
    expect(await readdir(folder.path)).toContain('running.json')
    await using second = await startEmulatorCommand('--state', folder.path)
    expect(second.listening.clientSecret).toBe(first.listening.clientSecret)
  })
})

describe('what cannot work is one sentence and exit code 2', () => {
  test('a port that is taken', async () => {
    await using other = await startEmulator()
    const { port } = new URL(other.baseUrl)
    const { code, stdout, stderr } = await run(['emulator', '--port', port])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(`--port ${port} of 127.0.0.1 is taken: choose another, or 0 for any free one\n`)
  })

  test('a page port that is taken', async () => {
    await using emulator = await startEmulatorCommand()
    const { port } = new URL(emulator.listening.pageUrl)
    const { code, stdout, stderr } = await run(['emulator', '--page-port', port])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(`--page-port ${port} of 127.0.0.1 is taken: choose another, or 0 for any free one\n`)
  })

  test.each([
    ['--port', 'x', '--port must be a port number, 0 to 65535: 0 for any free one'],
    ['--port', '65536', '--port must be a port number, 0 to 65535: 0 for any free one'],
    ['--page-port', '80a', '--page-port must be a port number, 0 to 65535: 0 for any free one'],
    ['--host', 'https://x', '--host must be an IP address or a host name'],
    [
      '--callback-ca',
      '/nowhere/ca.pem',
      "--callback-ca names a file that cannot be read: ENOENT: no such file or directory, open '/nowhere/ca.pem'",
    ],
    ['--callback-ca', 'package.json', '--callback-ca is not a PEM certificate'],
    [
      '--state',
      'package.json',
      expect.stringMatching(/^--state names a folder that cannot be made: EEXIST: .*package\.json'$/),
    ],
  ])('%s %s', async (flag, value, sentence) => {
    const { code, stdout, stderr } = await run(['emulator', flag, value])
    expect({ code, stdout, stderr: stderr.trimEnd() }).toEqual({ code: 2, stdout: '', stderr: sentence })
  })

  test.each([0o755, 0o750, 0o701])('a state folder with mode %o', async (mode) => {
    await using folder = await temporaryFolder()
    const state = join(folder.path, 'state')
    await mkdir(state)
    await chmod(state, mode)
    const { code, stdout, stderr } = await run(['emulator', '--state', state])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(
      `--state names ${state}, which others can read, and secrets go there: chmod 700 it, or choose another folder\n`,
    )
    expect(await readdir(state)).toEqual([])
  })

  test.each(['no JSON', '{}'])('a state file with %s', async (content) => {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'state.json')
    await writeFile(file, content)
    const { code, stdout, stderr } = await run(['emulator', '--state', folder.path])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(`${file} is not what an emulator wrote: delete it, and a new one is made\n`)
  })
})

describe('notification-subscriber notify', () => {
  test('sends to the emulator with the same --state, and tells how each callback was answered', async () => {
    await using folder = await temporaryFolder()
    await using emulator = await startEmulatorCommand('--allow-insecure-loopback', '--state', folder.path)
    await using receiver = await Receiver.startInsecure()
    const { baseUrl, authUrl, domain, clientId, clientSecret, caFile } = emulator.listening
    await using client = new NotificationClient({
      baseUrl,
      auth: { authUrl, domain, clientId, clientSecret },
      dispatcher: new Agent({ connect: { ca: await readFile(caFile, 'utf8') } }),
      allowInsecureLoopback: true,
    })
    await client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['alice'],
      callbackUrl: receiver.url,
    })
    const notify = ['notify', '--state', folder.path, '--type', 'lowEnergyAgentOpened', '--user', 'alice']
    expect(await run(notify)).toEqual({
      code: 0,
      stdout: `✔ lowEnergyAgentOpened → 1 at ${receiver.url}: 204`,
      stderr: '',
    })
    expect(receiver.callbacks[0]?.body.notification).toMatchObject({
      type: 'lowEnergyAgentOpened',
      payload: { username: 'alice', idx: 0 },
    })
    receiver.reactions.push(500, 500, 500)
    const custom = ['--type', 'brandNew', '--category', 'behavioral', '--payload', '{"a":1}', '--json']
    const answers = []
    for (let i = 0; i < 3; i++) answers.push(await run([...notify.slice(0, 3), '--user', 'alice', ...custom]))
    const failure = { event: 'callback', subscriptionId: 1, callbackUrl: receiver.url, status: 500 }
    const error = 'The callback was answered with status 500'
    expect(answers.map(({ code, stdout }) => [code, JSON.parse(stdout)])).toEqual([
      [1, { ...failure, error, subscriptionEnded: false }],
      [1, { ...failure, error, subscriptionEnded: false }],
      [1, { ...failure, error, subscriptionEnded: true }],
    ])
    expect(receiver.callbacks[1]?.body.notification).toMatchObject({ type: 'brandNew', payload: { a: 1 } })
    expect(await run(notify)).toEqual({
      code: 1,
      stdout: '✘ Nothing was sent: there is no subscription of alice for behavioral.',
      stderr: '',
    })
    expect(JSON.parse((await run([...notify, '--json'])).stdout)).toEqual({
      event: 'unsent',
      username: 'alice',
      category: 'behavioral',
    })
  })

  const to = ['--page-url', 'http://127.0.0.1:1/x/']
  test.each([
    [['--user', 'a', ...to], '--type is missing: which notification is to be sent?'],
    [['--type', 'a', ...to], '--user is missing: whom is the notification about?'],
    [
      ['--type', 'brandNew', '--user', 'a', ...to],
      '--category is missing: it must be one of behavioral, call-score, conversation-ai, because "brandNew" is no documented type',
    ],
    [
      ['--type', 'a', '--user', 'a', '--category', 'b', ...to],
      '--category must be one of behavioral, call-score, conversation-ai',
    ],
    [
      ['--type', 'a', '--user', 'a', '--category', 'cxScoreUpdated', ...to],
      '--category is delivered, not subscribed to: the type that brings it is `call-score`',
    ],
    [
      ['--type', 'cxScoreUpdated', '--user', 'a', '--payload', '[1]', ...to],
      `--payload must be a JSON object, such as '{"score":4.2}'`,
    ],
    [
      ['--type', 'cxScoreUpdated', '--user', 'a'],
      'Which emulator? Give --state with its folder, or --page-url with the address of its page',
    ],
    [
      ['--type', 'cxScoreUpdated', '--user', 'a', '--page-url', 'https://example.com/'],
      '--page-url must be the address that the emulator printed: http://127.0.0.1:…/…/',
    ],
    [
      ['--type', 'cxScoreUpdated', '--user', 'a', ...to],
      'No emulator answers at http://127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1',
    ],
  ])('%j is one sentence and exit code 2', async (args, sentence) => {
    expect(await run(['notify', ...args])).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` })
  })

  test('a folder without a running emulator, and an address of an earlier start, are told', async () => {
    await using folder = await temporaryFolder()
    await using emulator = await startEmulatorCommand()
    const notify = ['notify', '--type', 'cxScoreUpdated', '--user', 'a']
    expect(await run([...notify, '--state', folder.path])).toMatchObject({
      code: 2,
      stderr: `No emulator runs with --state ${folder.path}: start one with the same flag\n`,
    })
    const wrongToken = new URL('../other/', emulator.listening.pageUrl).href
    const refused = await run([...notify, '--page-url', wrongToken])
    expect([refused.code, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toMatch(/^The emulator refused: .+\n$/)
  })
})
