import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkCommand } from '../../../src/cli/check/check.js'
import { createLoopbackCertificate } from '../../../src/emulator/https/certificate.js'
import { call } from '../support.js'
import { bodyMark, checkFixture, serve } from './support.js'

const fixture = checkFixture()

/** The only step that fails in this environment. */
async function failureOf(changes: Record<string, string> = {}) {
  const { failures } = await fixture.check([], fixture.environment(changes))
  fixture.emulator.clearFaults()
  expect(failures).toHaveLength(1)
  return failures[0]
}

test('variables that are not set are named, what needs them is not tried, and the exit code is 2', async () => {
  const args = ['--json', '--lifecycle', '--username', 'u', '--callback-url', 'https://a.example/n']
  const { code, stdout, stderr } = await call(
    checkCommand,
    args,
    fixture.environment({ NOTIFICATION_DOMAIN: '' }),
  )
  expect([code, stderr]).toEqual([2, expect.stringContaining('NOTIFICATION_DOMAIN')])
  const events = stdout.split('\n').map((line) => JSON.parse(line))
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
    next: expect.stringContaining('NOTIFICATION_CA_FILE'),
  })
})

test('a certificate of another host fails at TLS', async () => {
  const { ca, tls } = createLoopbackCertificate({ host: 'other.example' })
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
  expect(await failureOf(changes)).toMatchObject({ name: 'Token', next: expect.stringContaining(variable) })
})

test('a token that has expired already fails at the token', async () => {
  const jwt = `x.${Buffer.from('{"exp":1}').toString('base64url')}.x`
  const malformedBody = JSON.stringify({ access_token: jwt, token_type: 'Bearer', expires_in: 60 })
  fixture.emulator.injectFault('token', { malformedBody })
  expect(await failureOf()).toMatchObject({
    name: 'Token',
    message: expect.stringMatching(/iss missing, azp missing, expired \d+ days ago/),
    next: expect.stringContaining("this machine's clock"),
  })
})

test('an answer that is no token fails at the token', async () => {
  fixture.emulator.injectFault('token', { malformedBody: bodyMark })
  expect(await failureOf()).toMatchObject({
    name: 'Token',
    next: expect.stringContaining('NOTIFICATION_AUTH_URL'),
  })
})

test.each([
  [401, 'NOTIFICATION_BASE_URL and NOTIFICATION_AUTH_URL'],
  [403, 'your account contact'],
  [500, 'try again later'],
])('a service that answers %i fails at the authorization', async (status, next) => {
  fixture.emulator.injectFault('unsubscribe', { status, body: bodyMark }, { times: 2 })
  expect(await failureOf()).toMatchObject({
    name: 'Authorization',
    message: expect.stringContaining(`${status}`),
    next: expect.stringContaining(next),
  })
})
