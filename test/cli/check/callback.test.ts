import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import { expect, test } from 'vitest'
import { bodyMark, checkFixture, serve } from './support.js'

const fixture = checkFixture()
const receiver = new DeliveryReceiver({ secrets: { token: 'hush-1' }, logger: false })

function callbackFlags(url: string, file = 'token'): string[] {
  return ['--callback-url', url, '--secret', `token=@${join(fixture.folder, file)}`]
}

/** Only the steps of the callback: without a configuration the others are quick. */
async function checkCallback(listener: RequestListener, flags: string[] = [], file = 'token') {
  await using app = await serve(listener)
  const { steps } = await fixture.check([...callbackFlags(app.url, file), ...flags], {})
  return steps.filter(({ name }) => name.startsWith('Callback'))
}

const respond =
  (status: number, headers = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(bodyMark)

test('posts a delivery of an unknown subscription and type, first without and then with the secret', async () => {
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

test.each<[string, RequestListener, string, string]>([
  ['answers 200 without the secret', respond(200), 'accepted with 200', 'Check the secret in the route'],
  ['is behind a body parser', respond(400), 'answered 400', 'Put the route before the body parser'],
  [
    'redirects',
    respond(307, { location: 'https://elsewhere.example/n?key=hush' }),
    'redirected with 307 to https://elsewhere.example/n:',
    'Subscribe with the address of the redirect',
  ],
  ['is not there', respond(404), 'answered 404', 'Check path and method'],
  ['fails', respond(500), 'answered 500', "Look into your app's log"],
])('a route that %s fails', async (_, listener, message, next) => {
  const [first, second] = await checkCallback(listener)
  const expected = { message: expect.stringContaining(message), next: expect.stringContaining(next) }
  expect(first).toMatchObject({ outcome: 'failed', ...expected })
  if (second?.outcome === 'failed') expect(second).toMatchObject(expected)
  else expect(second?.message).toContain(message)
})

test('a route that breaks off the connection was reached', async () => {
  const [first, second] = await checkCallback((request) => request.socket.destroy())
  expect(first).toMatchObject({
    outcome: 'failed',
    message: expect.stringContaining('broke before the whole answer had arrived'),
    next: "Look into your app's log",
  })
  expect(second).toMatchObject({ outcome: 'skipped' })
})

test('a redirect is not followed', async () => {
  const paths: unknown[] = []
  await checkCallback((request, response) => {
    paths.push(request.url)
    response.writeHead(302, { location: '/other' }).end()
  })
  expect(paths).toEqual(['/notifications', '/notifications'])
})

test('an address that a redirect leads to is not shown if it has the secret', async () => {
  const [, second] = await checkCallback(({ headers: { token } }, response) => {
    if (token === undefined) response.writeHead(401).end()
    else response.writeHead(307, { location: `https://elsewhere.example/${token}` }).end()
  })
  expect(second?.message).toMatch(/^redirected with 307 to \[redacted.*: to the service/)
})

test('a slow route fails', async () => {
  const slow: RequestListener = ({ headers }, response) => {
    if (headers.token === undefined) response.writeHead(401).end()
    // Half an answer is none.
    else response.writeHead(200).write(bodyMark)
  }
  const [first, second] = await checkCallback(slow, ['--callback-timeout-ms', '300'])
  expect(first?.outcome).toBe('passed')
  expect(second).toMatchObject({ outcome: 'failed', message: expect.stringContaining('within 300 ms') })
})

test('another secret than that of the receiver fails, and its header is named', async () => {
  const [first, second] = await checkCallback(toNodeHandler(receiver), [], 'other')
  expect(first?.outcome).toBe('passed')
  expect(second).toMatchObject({ outcome: 'failed', next: expect.stringContaining('header token') })
})

test('an address where nothing listens fails once', async () => {
  const app = await serve(respond(204))
  await app[Symbol.asyncDispose]()
  const { steps } = await fixture.check(callbackFlags(app.url), {})
  const [first, second] = steps.filter(({ name }) => name.startsWith('Callback'))
  expect(first).toMatchObject({
    outcome: 'failed',
    message: expect.stringContaining('the connection was refused'),
    next: expect.stringContaining(new URL(app.url).host),
  })
  expect(second?.outcome).toBe('skipped')
})

test('a certificate of a private authority is trusted with --callback-ca', async () => {
  await using app = await serve(toNodeHandler(receiver), fixture.emulator.tls)
  const untrusted = await fixture.check(callbackFlags(app.url), {})
  expect(untrusted.failures.at(-1)?.message).toContain('not trusted here')
  const ca = ['--callback-ca', join(fixture.folder, 'ca.pem')]
  const trusted = await fixture.check([...callbackFlags(app.url), ...ca], {})
  expect(trusted.failures).toEqual([])
})
