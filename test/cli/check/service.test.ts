import { writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { startEmulator } from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import { checkCommand } from '../../../src/cli/check/check.js'
import { clientVariables } from '../../../src/emulator/words.js'
import { created } from '../../emulator/support.js'
import { createCertificate } from '../../support/certificates.js'
import { call } from '../support.js'
import { bodyMark, checkFixture, serve } from './support.js'

const fixture = checkFixture()

/** In this environment only one step fails: this one, which says what to do next. */
async function expectFailure(
  [name, next, message = '']: [name: string, next: string, message?: string | RegExp],
  changes: Record<string, string> = {},
) {
  const { failures } = await fixture.check([], fixture.environment(changes))
  fixture.emulator.clearFaults()
  const failure = { name, message: expect.stringMatching(message), next: expect.stringContaining(next) }
  expect(failures).toMatchObject([failure])
}

test('variables that are not set are named, what needs them is not tried, and the exit code is 2', async () => {
  const args = ['--json', '--lifecycle', '--username', 'u', '--callback-url', 'https://a.example/n']
  const { code, stdout, stderr } = await call(
    checkCommand,
    args,
    fixture.environment({ NOTIFICATION_DOMAIN: '' }),
  )
  expect([code, stderr]).toEqual([2, expect.stringContaining('--dotenv')])
  const events = stdout.split('\n').map((line) => JSON.parse(line))
  expect(events[0].message).toContain('NOTIFICATION_DOMAIN')
  expect(events.map(({ name, outcome, ok }) => [name, outcome ?? ok])).toEqual([
    ['Configuration', 'skipped'],
    ['Token', 'skipped'],
    ['Authorization', 'skipped'],
    ['Lifecycle', 'skipped'],
    [undefined, false],
  ])
})

test('a variable that cannot work fails', async () => {
  const { outcomes, failures } = await fixture.check(
    [],
    fixture.environment({ NOTIFICATION_BASE_URL: 'http://a.example' }),
  )
  expect(outcomes[0]).toEqual(['Configuration', 'failed'])
  expect(failures[0]?.message).toContain('NOTIFICATION_BASE_URL')
})

test('a host that does not exist fails at DNS', async () => {
  const changes = { NOTIFICATION_BASE_URL: 'https://nowhere.invalid' }
  const { outcomes, failures } = await fixture.check([], fixture.environment(changes))
  expect(outcomes.map(([, outcome]) => outcome)).toEqual(['passed', 'failed', 'passed', 'passed', 'failed'])
  expect(failures[0]).toMatchObject({
    name: 'DNS and TLS of nowhere.invalid',
    next: 'Check NOTIFICATION_BASE_URL',
  })
  expect(failures[0]?.message).toMatch(/nowhere\.invalid: the host name .*(ENOTFOUND|EAI_AGAIN)/)
})

test('a certificate that is not trusted fails at TLS, with the variable that helps', async () => {
  const { failures } = await fixture.check([], fixture.environment({ NOTIFICATION_CA_FILE: '' }))
  expect(failures[0]).toMatchObject({
    name: expect.stringContaining('DNS and TLS of 127.0.0.1'),
    message: expect.stringContaining('NOTIFICATION_CA_FILE'),
  })
})

test('a certificate of another host fails at TLS', async () => {
  const { ca, tls } = createCertificate({ host: 'other.example' })
  const caFile = join(fixture.folder, 'other-ca.pem')
  await writeFile(caFile, ca)
  await using other = await serve(() => {}, tls)
  const { origin } = new URL(other.url)
  const changes = {
    NOTIFICATION_BASE_URL: origin,
    NOTIFICATION_AUTH_URL: origin,
    NOTIFICATION_CA_FILE: caFile,
  }
  const { outcomes, failures } = await fixture.check([], fixture.environment(changes))
  expect(outcomes.map(([, outcome]) => outcome)).toEqual(['passed', 'failed', 'failed', 'skipped'])
  expect(failures[0]?.message).toContain('issued for another host')
})

test('behind a proxy a server that is not reached directly is no failure', async () => {
  const changes = { NOTIFICATION_BASE_URL: 'https://nowhere.invalid', HTTPS_PROXY: 'http://127.0.0.1:1' }
  const { outcomes } = await fixture.check([], fixture.environment(changes))
  expect(outcomes[1]).toEqual(['DNS and TLS of nowhere.invalid', 'skipped'])
})

test.each([
  ['a wrong client secret', { NOTIFICATION_CLIENT_SECRET: 'hush-no' }, 'NOTIFICATION_CLIENT_SECRET'],
  ['a wrong domain', { NOTIFICATION_DOMAIN: 'acme' }, 'NOTIFICATION_DOMAIN'],
])('%s fails at the token, with the variable', async (_, changes, variable) => {
  await expectFailure(['Token', variable], changes)
})

test('a token that has expired already fails at the token', async () => {
  const jwt = `x.${Buffer.from('{"exp":1}').toString('base64url')}.x`
  const malformedBody = JSON.stringify({ access_token: jwt, token_type: 'Bearer', expires_in: 60 })
  fixture.emulator.injectFault('token', { malformedBody })
  const message = /iss missing, azp missing, expired \d+ days ago/
  await expectFailure(['Token', "this machine's clock", message])
})

test('an answer that is no token fails at the token', async () => {
  fixture.emulator.injectFault('token', { malformedBody: bodyMark })
  await expectFailure(['Token', 'NOTIFICATION_AUTH_URL'])
})

test.each([
  [401, 'NOTIFICATION_BASE_URL'],
  [403, 'your account contact'],
  [500, 'Try again later'],
  [503, 'Try again later'],
  [404, 'NOTIFICATION_BASE_URL'],
  [405, 'NOTIFICATION_BASE_URL'],
  [301, 'NOTIFICATION_BASE_URL'],
  [204, 'NOTIFICATION_BASE_URL'],
])('a service that answers %i fails at the authorization', async (status, next) => {
  fixture.emulator.injectFault('create', { status }, { times: 2 })
  await expectFailure(['Authorization', next, `${status}`])
})

test('a user name and a password need no token', async () => {
  const { baseUrl, username, password } = fixture.emulator
  const basic = { NOTIFICATION_USERNAME: username, NOTIFICATION_PASSWORD: password }
  const env = { NOTIFICATION_BASE_URL: baseUrl, NOTIFICATION_CA_FILE: join(fixture.folder, 'ca.pem') }
  const outcomesWith = async (changes: object) =>
    (await fixture.check([], { ...env, ...basic, ...changes })).outcomes.slice(-3)
  expect(await outcomesWith({})).toEqual([
    ['Token', 'skipped'],
    ['Authorization', 'passed'],
    ['Routes', 'unknown'],
  ])
  expect(await outcomesWith({ NOTIFICATION_PASSWORD: 'hush' })).toContainEqual(['Authorization', 'failed'])
})

test('nothing is sent that could end or change a subscription', async () => {
  await using emulator = await startEmulator()
  await created(emulator)
  const before = emulator.requests.length
  const caFile = join(fixture.folder, 'another-ca.pem')
  await writeFile(caFile, emulator.ca)
  await fixture.check([], clientVariables(emulator, caFile))
  expect(emulator.requests.slice(before).map(({ operation, status }) => [operation, status])).toEqual([
    ['token', 200],
    ['create', 400],
    ['create', 401],
  ])
})

describe('an address that is not the service', () => {
  const html = { 'content-type': 'text/html' }
  const page = `<!doctype html><title>${bodyMark}</title>`
  const answers: Record<string, RequestListener> = {
    'a web server that answers every request 404 with HTML': (_request, response) =>
      response.writeHead(404, html).end(page),
    'a web server that answers every request 200 with HTML': (_request, response) =>
      response.writeHead(200, html).end(page),
    'a web server that answers every request 204': (_request, response) => response.writeHead(204).end(),
    'an authorization server': (request, response) => {
      const isToken = request.url?.includes('/token') === true
      const body = isToken ? { error: 'invalid_client' } : { error: 'HTTP 404 Not Found' }
      response
        .writeHead(isToken ? 401 : 404, { 'content-type': 'application/json' })
        .end(JSON.stringify(body))
    },
    'a web server that redirects to a login': (_request, response) =>
      response.writeHead(302, { location: '/login' }).end(),
  }

  test.each(Object.entries(answers))('%s fails at the authorization', async (_name, listener) => {
    await using other = await serve(listener, fixture.emulator.tls)
    const changes = { NOTIFICATION_BASE_URL: new URL(other.url).origin }
    await expectFailure(['Authorization', 'NOTIFICATION_BASE_URL'], changes)
  })

  test('a wrong path in front fails at the authorization', async () => {
    const { baseUrl } = fixture.emulator
    for (const prefix of ['/v1', '/api', '/api/subscriptions']) {
      const changes = { NOTIFICATION_BASE_URL: baseUrl + prefix }
      await expectFailure(['Authorization', 'NOTIFICATION_BASE_URL'], changes)
    }
  })

  test.each([400, 409, 422])('a server that answers every request %i shows nothing', async (status) => {
    await using other = await serve((_request, response) => {
      response.writeHead(status).end('{}')
    }, fixture.emulator.tls)
    const changes = { NOTIFICATION_BASE_URL: new URL(other.url).origin }
    const { steps } = await fixture.check([], fixture.environment(changes))
    expect(steps.find(({ name }) => name === 'Authorization')).toMatchObject({
      outcome: 'unknown',
      message: expect.stringContaining('not shown by this check'),
      next: expect.stringContaining('--lifecycle'),
    })
  })
})
