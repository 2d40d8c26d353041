import { writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import type { Fault } from 'notification-subscriber/emulator'
import { afterEach, expect, test, vi } from 'vitest'
import { created } from '../emulator/support.js'
import { createCertificate } from '../support/certificates.js'
import { ConnectProxy } from '../support/connect-proxy.js'
import { refusingPort } from '../support/listen.js'
import { expectPage } from '../support/message-page.js'
import { bodyMark, checkFixture, serve, shown } from './check-support.js'
import { call } from './support.js'

const fixture = checkFixture()
afterEach(() => void vi.unstubAllEnvs())

const html = { 'content-type': 'text/html' }
const page = `<!doctype html><title>${bodyMark}</title>`
const notTheService: Record<string, RequestListener> = {
  'a web server that answers every request 404 with HTML': (_request, response) =>
    response.writeHead(404, html).end(page),
  'a web server that answers every request 200 with HTML': (_request, response) =>
    response.writeHead(200, html).end(page),
  'a web server that answers every request 204': (_request, response) => response.writeHead(204).end(),
  'an authorization server': (request, response) => {
    const isToken = request.url?.includes('/token') === true
    const body = isToken ? { error: 'invalid_client' } : { error: 'HTTP 404 Not Found' }
    response.writeHead(isToken ? 401 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  },
  'a web server that redirects to a login': (_request, response) =>
    response.writeHead(302, { location: '/login' }).end(),
}

/** What fails, by the page of messages, with the only step that may fail. */
type Case = [what: string, step: 'Token' | 'Authorization', changes?: Record<string, string>, fault?: Fault]

const expiredToken = {
  access_token: `x.${Buffer.from(`{"exp":${Math.floor(Date.now() / 1000) - 3 * 86_400 - 60}}`).toString('base64url')}.x`,
  token_type: 'Bearer',
  expires_in: 60,
}
/** What Kong answers for a path that it does not know. */
const kong = { status: 404, headers: { server: 'kong/3.4.2' }, body: '{ "message":"no Route matched" }' }
const cases: readonly Case[] = [
  ['a gateway without a path for tokens', 'Token', {}, kong],
  ['a gateway without a path for subscriptions', 'Authorization', {}, kong],
  ['a wrong client secret', 'Token', { NOTIFICATION_CLIENT_SECRET: 'hush-no' }],
  ['a wrong domain', 'Token', { NOTIFICATION_DOMAIN: 'acme' }],
  ['a token that has expired', 'Token', {}, { malformedBody: JSON.stringify(expiredToken) }],
  ['an answer that is no token', 'Token', {}, { malformedBody: bodyMark }],
  ...[401, 403, 500, 503, 404, 405, 301, 204].map(
    (status): Case => [`a service that answers ${status}`, 'Authorization', {}, { status }],
  ),
]

test('messages about a service that fails: the reviewed page', async () => {
  const messages: Record<string, string> = {}
  const addFailure = async (what: string, step: string, changes: Record<string, string> = {}) => {
    const { failures } = await fixture.check([], fixture.environment(changes))
    fixture.emulator.clearFaults()
    expect(failures.map(({ name }) => name).join()).toBe(step)
    messages[what] = shown(failures[0])
  }
  for (const [what, step, changes, fault] of cases) {
    if (fault) fixture.emulator.injectFault(step === 'Token' ? 'token' : 'create', fault, { times: 2 })
    await addFailure(what, step, changes)
  }
  for (const [what, listener] of Object.entries(notTheService)) {
    await using other = await serve(listener, fixture.emulator.tls)
    await addFailure(what, 'Authorization', { NOTIFICATION_BASE_URL: new URL(other.url).origin })
  }
  for (const prefix of ['/v1', '/api', '/api/subscriptions']) {
    const changes = { NOTIFICATION_BASE_URL: fixture.emulator.baseUrl + prefix }
    const step = prefix === '/api/subscriptions' ? 'Configuration' : 'Authorization'
    await addFailure(`${prefix} in front of the path`, step, changes)
  }
  const nowhere = `127.0.0.1:${refusingPort}`
  const unreachable = { NOTIFICATION_BASE_URL: `https://${nowhere}` }
  await addFailure('nothing listens', 'Authorization', unreachable)
  await addFailure('a host that does not exist', 'Authorization', {
    NOTIFICATION_BASE_URL: 'https://nowhere.invalid',
  })
  await addFailure('an untrusted certificate', 'Token', { NOTIFICATION_CA_FILE: '' })
  await using silent = await serve(() => vi.advanceTimersByTime(15_000), fixture.emulator.tls)
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  await addFailure('a server that does not answer', 'Authorization', {
    NOTIFICATION_BASE_URL: new URL(silent.url).origin,
  })
  vi.useRealTimers()
  const { ca, tls } = createCertificate({ host: 'other.example' })
  const caFile = join(fixture.folder, 'other-ca.pem')
  await writeFile(caFile, ca)
  await using other = await serve(() => {}, tls)
  const { origin } = new URL(other.url)
  const wrong = { NOTIFICATION_BASE_URL: origin, NOTIFICATION_AUTH_URL: origin, NOTIFICATION_CA_FILE: caFile }
  await addFailure('a certificate of another host', 'Token', wrong)
  await using proxy = await ConnectProxy.listen({ to: fixture.emulator.baseUrl, refuseWith: 407 })
  for (const name of ['https_proxy', 'http_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, undefined)
  vi.stubEnv('HTTPS_PROXY', proxy.url)
  const host = 'https://notifications.invalid'
  const addresses = { NOTIFICATION_BASE_URL: host, NOTIFICATION_AUTH_URL: host }
  await addFailure('a proxy that wants credentials', 'Token', { HTTPS_PROXY: proxy.url, ...addresses })
  await expectPage('check-of-a-service', messages)
})

test('everything right is a tick for each step, and no subscription of others is touched', async () => {
  const { emulator, folder } = fixture
  const receiver = new DeliveryReceiver({ secrets: { token: 'hush-1' }, logger: false })
  await using app = await serve(toNodeHandler(receiver), emulator.tls)
  const other = await created(emulator, { url: app.url, types: 'behavioral,call-score' })
  const flags = ['--callback-url', app.url, '--secret', `token=@${join(folder, 'token')}`]
  const lifecycle = ['--lifecycle', '--username', 'alice']
  const { code, stdout, stderr } = await call(['check', ...flags, ...lifecycle], fixture.environment())
  expect([code, stderr]).toEqual([0, ''])
  const text = stdout.replaceAll(emulator.baseUrl, '<base URL>').replace(/\d+(\.\d+)? m?s/g, '<duration>')
  await expectPage('check-that-passes', { 'everything right': text })
  expect(emulator.subscriptions.map(({ subscriptionId }) => subscriptionId)).toEqual([other])
})

test('variables that are not set are named, what needs them is not tried, and the exit code is 2', async () => {
  const args = ['check', '--json', '--lifecycle', '--username', 'u', '--callback-url', 'https://a.example/n']
  const { code, stdout, stderr } = await call(args, fixture.environment({ NOTIFICATION_DOMAIN: '' }))
  expect([code, stderr]).toEqual([2, expect.stringContaining('--dotenv')])
  const events = stdout.split('\n').map((line) => JSON.parse(line))
  expect(events[0].message).toContain('NOTIFICATION_DOMAIN')
  expect(events.map(({ name, outcome, ok }) => [name, outcome ?? ok])).toEqual([
    ['Configuration', 'skipped'],
    ['Lifecycle', 'skipped'],
    [undefined, false],
  ])
})

test('a user name and a password need no token', async () => {
  const { baseUrl, username, password } = fixture.emulator
  const basic = { NOTIFICATION_USERNAME: username, NOTIFICATION_PASSWORD: password }
  const env = { NOTIFICATION_BASE_URL: baseUrl, NOTIFICATION_CA_FILE: join(fixture.folder, 'ca.pem') }
  const outcomesWith = async (changes: object) =>
    (await fixture.check([], { ...env, ...basic, ...changes })).outcomes.slice(1)
  expect(await outcomesWith({})).toEqual([['Authorization', 'passed']])
  expect(await outcomesWith({ NOTIFICATION_PASSWORD: 'hush' })).toContainEqual(['Authorization', 'failed'])
})

test('nothing is sent that could end or change a subscription', async () => {
  const { emulator } = fixture
  const before = emulator.requests.length
  await fixture.check([])
  expect(emulator.requests.slice(before).map(({ operation, status }) => [operation, status])).toEqual([
    ['token', 200],
    ['token', 200],
    ['create', 400],
    ['create', 401],
  ])
})

test('a server that answers every request 422 shows nothing', async () => {
  await using other = await serve((_request, response) => {
    response.writeHead(422).end('{}')
  }, fixture.emulator.tls)
  const changes = { NOTIFICATION_BASE_URL: new URL(other.url).origin }
  const { steps } = await fixture.check([], fixture.environment(changes))
  expect(steps.find(({ name }) => name === 'Authorization')).toMatchObject({
    outcome: 'unknown',
    next: expect.stringContaining('--lifecycle'),
  })
})

test('the last line counts the steps that were tried', async () => {
  const url = `https://127.0.0.1:${refusingPort}/`
  const { stdout } = await call(['check', '--callback-url', url, '--secret', 'token=env:TOKEN'], {
    TOKEN: 'hush',
  })
  expect(stdout.match(/^- /gm)).toHaveLength(2)
  expect(stdout).toMatch(/\n1 of 1 steps failed\.$/)
})
