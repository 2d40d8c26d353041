import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { listen } from '../support/listen.js'
import { run, temporaryFolder } from './support.js'

/** Stands in every body that an answer has here, and must be printed nowhere. */
const bodyMark = 'the-body-of-an-answer'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let emulator: Emulator
beforeAll(async () => {
  folder = await temporaryFolder()
  emulator = await startEmulator()
  await writeFile(join(folder.path, 'ca.pem'), emulator.ca)
  await writeFile(join(folder.path, 'token'), 'hush-1\n')
  await writeFile(join(folder.path, 'other'), 'hush-2')
})
afterAll(async () => {
  await emulator.close()
  await folder[Symbol.asyncDispose]()
})

/** Right in every way, but for what a test changes. */
function environment(changes: Record<string, string> = {}): Record<string, string> {
  return {
    NOTIFICATION_BASE_URL: emulator.baseUrl,
    NOTIFICATION_AUTH_URL: emulator.authUrl,
    NOTIFICATION_DOMAIN: emulator.domain,
    NOTIFICATION_CLIENT_ID: emulator.clientId,
    NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
    NOTIFICATION_CA_FILE: join(folder.path, 'ca.pem'),
    ...changes,
  }
}

interface Step {
  name: string
  outcome: string
  message: string
  next?: string
}

/** Runs `check --json`; what every check must keep is asserted here. */
async function check(args: string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await run(['check', '--json', ...args], { env })
  for (const secret of ['hush', bodyMark, emulator.clientSecret])
    expect(stdout + stderr).not.toContain(secret)
  expect(stderr).toBe('')
  const lines: (Step & { event: string; ok?: boolean; failed?: number })[] = stdout
    .split('\n')
    .map((line) => JSON.parse(line))
  const steps = lines.filter(({ event }) => event === 'step')
  const failures = steps.filter(({ outcome }) => outcome === 'failed')
  expect(lines.at(-1)).toEqual({ event: 'result', ok: failures.length === 0, failed: failures.length })
  expect(code).toBe(failures.length === 0 ? 0 : 1)
  return { steps, failures, outcomes: steps.map(({ name, outcome }) => [name, outcome]) }
}

/** A receiver by http: or https: that answers as it is told. */
async function serve(
  listener: RequestListener,
  tls?: { key: string; cert: string },
): Promise<AsyncDisposable & { url: string }> {
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  const port = await listen(server)
  const protocol = tls === undefined ? 'http' : 'https'
  return {
    url: `${protocol}://127.0.0.1:${port}/notifications`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function callbackFlags(url: string, file = 'token'): string[] {
  return ['--callback-url', url, '--secret', `token=@${join(folder.path, file)}`]
}

const receiver = new DeliveryReceiver({ secrets: { token: 'hush-1' }, logger: false })

describe('notification-subscriber check', () => {
  test('everything right is a tick for each step, and exit code 0', async () => {
    await using app = await serve(toNodeHandler(receiver), emulator.tls)
    const { host } = new URL(emulator.baseUrl)
    const { code, stdout, stderr } = await run(['check', ...callbackFlags(app.url)], { env: environment() })
    expect([code, stderr]).toEqual([0, ''])
    const lines = stdout.split('\n')
    expect(lines).toEqual([
      `✔ Configuration: ${emulator.baseUrl}, domain emulator`,
      expect.stringMatching(
        /^✔ DNS and TLS of \S+: 127\.0\.0\.1; TLSv1\.3, its certificate is valid until \d{4}-\d\d-\d\d$/,
      ),
      expect.stringMatching(
        /^✔ Token: iss https:\S+\/auth\/realms\/emulator, azp emulator-client, exp in \d+ s, scope none$/,
      ),
      '✔ Authorization: the service accepts the token: subscription 0 does not exist (404), as it should be',
      expect.stringMatching(/^✔ Callback without the secret: refused with 401 in \d+ ms$/),
      expect.stringMatching(/^✔ Callback with the secret: accepted with 204 in \d+ ms$/),
      '',
      'All is well.',
    ])
    expect(lines[1]).toContain(host)
    expect(emulator.subscriptions).toEqual([])
  })

  test('the variables can come from a file, and the environment goes before it', async () => {
    const file = join(folder.path, 'dot.env')
    const lines = Object.entries(
      environment({ NOTIFICATION_DOMAIN: 'overridden', NOTIFICATION_SCOPE: 'all' }),
    )
    await writeFile(file, lines.map(([name, value]) => `${name}='${value}'\n`).join(''))
    const { steps } = await check(['--dotenv', file], { NOTIFICATION_DOMAIN: 'emulator' })
    expect(steps[2]).toMatchObject({
      name: 'Token',
      outcome: 'passed',
      iss: `${emulator.authUrl}/auth/realms/emulator`,
      azp: 'emulator-client',
      exp: expect.any(Number),
      scope: 'all',
    })
  })

  test('variables that are not set are named, and what needs them is not tried', async () => {
    const { outcomes, failures } = await check([], environment({ NOTIFICATION_DOMAIN: '' }))
    expect(outcomes).toEqual([
      ['Configuration', 'failed'],
      ['Token', 'skipped'],
      ['Authorization', 'skipped'],
    ])
    expect(failures[0]?.message).toContain('NOTIFICATION_DOMAIN')
  })

  test('a host that does not exist fails at DNS', async () => {
    const changes = { NOTIFICATION_BASE_URL: 'https://nowhere.invalid' }
    const { outcomes, failures } = await check([], environment(changes))
    expect(outcomes.map(([, outcome]) => outcome)).toEqual(['passed', 'failed', 'passed', 'passed', 'failed'])
    expect(failures[0]).toMatchObject({
      name: 'DNS and TLS of nowhere.invalid',
      next: 'Check NOTIFICATION_BASE_URL',
    })
    expect(failures[0]?.message).toMatch(/nowhere\.invalid: the host name .*(ENOTFOUND|EAI_AGAIN)/)
  })

  test('a certificate that nobody here trusts fails at TLS, with the variable that helps', async () => {
    const { failures } = await check([], environment({ NOTIFICATION_CA_FILE: '' }))
    expect(failures[0]).toMatchObject({
      name: expect.stringContaining('DNS and TLS of 127.0.0.1'),
      message: expect.stringContaining('signed by an authority that is not trusted here'),
      next: 'Set NOTIFICATION_CA_FILE to a file with the certificate of the authority that signed it',
    })
  })

  test('a certificate of another host fails at TLS', async () => {
    const { ca, tls } = createLoopbackCertificate({ host: 'other.example' })
    const caFile = join(folder.path, 'other-ca.pem')
    await writeFile(caFile, ca)
    await using other = await serve(() => {}, tls)
    const { origin } = new URL(other.url)
    const changes = {
      NOTIFICATION_BASE_URL: origin,
      NOTIFICATION_AUTH_URL: origin,
      NOTIFICATION_CA_FILE: caFile,
    }
    const { outcomes, failures } = await check([], environment(changes))
    expect(outcomes.map(([, outcome]) => outcome)).toEqual(['passed', 'failed', 'failed', 'skipped'])
    expect(failures[0]?.message).toContain('issued for another host')
  })

  test('a wrong client secret fails at the token', async () => {
    const { failures } = await check([], environment({ NOTIFICATION_CLIENT_SECRET: 'hush-no' }))
    expect(failures).toMatchObject([
      {
        name: 'Token',
        message: 'the token endpoint answered 401 (invalid_client)',
        next: expect.stringContaining('Compare NOTIFICATION_CLIENT_ID and NOTIFICATION_CLIENT_SECRET'),
      },
    ])
  })

  test('a wrong domain fails at the token', async () => {
    const { failures } = await check([], environment({ NOTIFICATION_DOMAIN: 'acme' }))
    expect(failures).toMatchObject([
      {
        name: 'Token',
        message: 'the token endpoint answered 404',
        next: expect.stringContaining('NOTIFICATION_DOMAIN'),
      },
    ])
  })

  test('a token that is over already fails at the token', async () => {
    const jwt = `x.${Buffer.from('{"exp":1}').toString('base64url')}.x`
    const malformedBody = JSON.stringify({ access_token: jwt, token_type: 'Bearer', expires_in: 60 })
    emulator.injectFault('token', { malformedBody })
    const { failures } = await check([], environment())
    expect(failures).toMatchObject([
      {
        name: 'Token',
        message: expect.stringContaining('it is over already: iss missing, azp missing, exp in -'),
        next: expect.stringContaining("this machine's clock"),
      },
    ])
  })

  test('an answer that is no token fails at the token', async () => {
    emulator.injectFault('token', { malformedBody: bodyMark })
    const { failures } = await check([], environment())
    expect(failures).toMatchObject([
      { name: 'Token', message: 'the answer with status 200 has no token in it' },
    ])
  })

  test.each([
    [401, 'the service does not accept the token (401)', 'NOTIFICATION_BASE_URL and NOTIFICATION_AUTH_URL'],
    [403, 'the service accepts the token, but not for subscriptions (403)', 'your account contact'],
    [500, 'the service answered 500 when subscription 0 was unsubscribed, and not 404', 'try again later'],
  ])('a service that answers %i fails at the authorization', async (status, message, next) => {
    emulator.injectFault('unsubscribe', { status, body: bodyMark }, { times: 2 })
    const { failures } = await check([], environment())
    emulator.clearFaults()
    expect(failures).toMatchObject([{ name: 'Authorization', message, next: expect.stringContaining(next) }])
  })
})

describe('notification-subscriber check --callback-url', () => {
  /** Only the steps of the callback: without a configuration the others are quick. */
  async function checkCallback(listener: RequestListener, flags: string[] = [], file = 'token') {
    await using app = await serve(listener)
    const { steps } = await check([...callbackFlags(app.url, file), ...flags], {})
    return steps.filter(({ name }) => name.startsWith('Callback'))
  }

  const respond =
    (status: number, headers = {}): RequestListener =>
    (_, response) =>
      void response.writeHead(status, headers).end(bodyMark)

  test('posts a delivery that no handler is for, first without and then with the secret', async () => {
    const requests: unknown[] = []
    await checkCallback((request, response) => {
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        const { method, url, headers } = request
        requests.push([method, url, headers['content-type'], headers.token, JSON.parse(body)])
        response.writeHead(headers.token === 'hush-1' ? 204 : 401).end()
      })
    })
    const body = {
      subscriptionId: 0,
      notification: {
        id: expect.stringMatching(/^[\da-f-]{36}$/),
        time: expect.any(Number),
        ver: '1.0',
        type: 'configurationCheck',
        payload: {},
      },
    }
    expect(requests).toEqual([
      ['POST', '/notifications', 'application/json', undefined, body],
      ['POST', '/notifications', 'application/json', 'hush-1', body],
    ])
  })

  test.each<[string, RequestListener, string, string, string]>([
    [
      'answers 200 without the secret',
      respond(200),
      'accepted with 200: anybody can send notifications to this address',
      'accepted with 200 in',
      'Let the route check the secret',
    ],
    [
      'is behind a body parser that answers 400',
      respond(400),
      'answered 400: something before the receiver, such as a body parser, refused the delivery',
      'answered 400: something before the receiver',
      'Put the route before the body parser',
    ],
    [
      'redirects',
      respond(307, { location: 'https://elsewhere.example/n?key=hush' }),
      'redirected with 307 to https://elsewhere.example/n: a callback that is answered so has failed',
      'redirected with 307',
      'Subscribe with the address that it leads to',
    ],
    ['is not there', respond(404), 'answered 404: no route takes a POST there', 'answered 404', 'Check path'],
    ['fails', respond(500), 'answered 500', 'answered 500', 'Look into the log of the app'],
  ])('a route that %s fails', async (_, listener, without, withSecret, next) => {
    const [first, second] = await checkCallback(listener)
    expect(first).toMatchObject({ outcome: 'failed', message: without, next: expect.stringContaining(next) })
    expect(second?.message).toContain(withSecret)
  })

  test('a redirect is not followed', async () => {
    const paths: unknown[] = []
    await checkCallback((request, response) => {
      paths.push(request.url)
      response.writeHead(302, { location: '/other' }).end()
    })
    expect(paths).toEqual(['/notifications', '/notifications'])
  })

  test('a slow route fails', async () => {
    const slow: RequestListener = ({ headers }, response) => {
      if (headers.token === undefined) response.writeHead(401).end()
      // Half an answer is none.
      else response.writeHead(200).write(bodyMark)
    }
    const [first, second] = await checkCallback(slow, ['--callback-timeout-ms', '300'])
    expect(first?.outcome).toBe('passed')
    expect(second).toMatchObject({
      outcome: 'failed',
      message: 'no complete answer within 300 ms',
      next: expect.stringContaining('Answer first and work afterwards'),
    })
  })

  test('another secret than the receiver has fails, and its header is named', async () => {
    const [first, second] = await checkCallback(toNodeHandler(receiver), [], 'other')
    expect(first?.outcome).toBe('passed')
    expect(second).toMatchObject({
      outcome: 'failed',
      message: 'refused with 401',
      next: 'Does the receiver expect the header token, and is its value what the file holds?',
    })
  })

  test('an address where nothing listens fails once', async () => {
    const app = await serve(respond(204))
    await app[Symbol.asyncDispose]()
    const { steps } = await check(callbackFlags(app.url), {})
    const [first, second] = steps.filter(({ name }) => name.startsWith('Callback'))
    expect(first).toMatchObject({
      outcome: 'failed',
      message: expect.stringContaining('the connection was refused'),
      next: 'Is the app running, and is this its address from outside?',
    })
    expect(second?.outcome).toBe('skipped')
  })

  test('a certificate of a private authority is trusted with --callback-ca', async () => {
    await using app = await serve(toNodeHandler(receiver), emulator.tls)
    const untrusted = await check(callbackFlags(app.url), {})
    expect(untrusted.failures.at(-1)?.message).toContain('not trusted here')
    const trusted = await check([...callbackFlags(app.url), '--callback-ca', join(folder.path, 'ca.pem')], {})
    expect(trusted.failures.map(({ name }) => name)).toEqual(['Configuration'])
  })

  const url = ['--callback-url', 'https://app.example.com/n']
  test.each([
    [
      ['--callback-url', 'http://app.example.com/n'],
      '--callback-url must be an https: URL: http: is allowed on loopback only',
    ],
    [url, '--secret is missing: which header does the receiver know its callbacks by? NAME=@FILE'],
    [['--secret', 'token=@x'], '--secret is for --callback-url, which is missing'],
    [
      [...url, '--secret', 'token=abc'],
      '--secret token must come from a file, token=@FILE: other users of this machine can see a command line',
    ],
    [
      [...url, '--secret', 'abc'],
      '--secret must be NAME=@FILE: the name of a header, and the file that holds its value',
    ],
    [
      [...url, '--secret', 'token=@/nowhere/x'],
      "--secret names a file that cannot be read: ENOENT: no such file or directory, open '/nowhere/x'",
    ],
    [
      [...url, '--secret', 'token=@package.json'],
      '--secret token: its file does not hold one line that can be sent in a header',
    ],
    [
      ['--dotenv', '/nowhere/.env'],
      "--dotenv names a file that cannot be read: ENOENT: no such file or directory, open '/nowhere/.env'",
    ],
  ])('%j is one sentence and exit code 2', async (args, sentence) => {
    expect(await run(['check', ...args])).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` })
  })

  test('a time that is none is one sentence and exit code 2', async () => {
    const { code, stderr } = await run([
      'check',
      ...callbackFlags('https://x.example/'),
      '--callback-timeout-ms',
      '0',
    ])
    expect([code, stderr]).toEqual([2, '--callback-timeout-ms must be a number of milliseconds\n'])
  })
})
