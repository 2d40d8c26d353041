import { writeFile } from 'node:fs/promises'
import type { RequestListener, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import { afterEach, expect, test, vi } from 'vitest'
import { createCertificate } from '../support/certificates.js'
import { ConnectProxy } from '../support/connect-proxy.js'
import { refusingPort } from '../support/listen.js'
import { expectPage } from '../support/message-page.js'
import { bodyMark, checkFixture, serve, shown } from './check-support.js'

const fixture = checkFixture()
afterEach(() => void vi.unstubAllEnvs())
const receiver = new DeliveryReceiver({ secrets: { token: 'hush-1' }, logger: false })

function callbackFlags(url: string): string[] {
  return ['--callback-url', url, '--secret', `token=@${join(fixture.folder, 'token')}`]
}

/** Only the steps of the callback: without a configuration the others are quick. */
async function checkCallback(listener: RequestListener) {
  await using app = await serve(listener)
  const { steps } = await fixture.check(callbackFlags(app.url), {})
  return steps.filter(({ name }) => name.startsWith('Callback'))
}

const page = `<!doctype html><title>${bodyMark}</title>`
const respond =
  (status: number, headers = {}, body = bodyMark): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(body)

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
      // A redirect is not followed: the secret is for this address only.
      response.writeHead(307, { location: '/other' }).end()
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

const first401 =
  (afterwards: (token: string, response: ServerResponse) => void): RequestListener =>
  ({ headers: { token } }, response) => {
    if (token === undefined) response.writeHead(401).end()
    else afterwards(String(token), response)
  }

test('messages about a route that fails: the reviewed page', async () => {
  const listeners: Record<string, RequestListener> = {
    'answers 200 without the secret': respond(200),
    'stands behind a body parser': respond(400),
    redirects: respond(307, { location: 'https://elsewhere.example/n?key=hush' }),
    'redirects to an address with the secret': first401((token, response) => {
      response.writeHead(307, { location: `https://elsewhere.example/${token}` }).end()
    }),
    'is not there': respond(404),
    fails: respond(500),
    'breaks off the connection': (request) => request.socket.destroy(),
    // Half an answer is none.
    'is slow': first401((_, response) => response.writeHead(200).write(bodyMark)),
    'is a login of an ingress': respond(401, { 'www-authenticate': 'Basic' }, 'Unauthorized'),
    'is an HTML page': respond(200, { 'content-type': 'text/html' }, page),
    'is not reached by nginx': respond(
      502,
      {},
      '<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 B',
    ),
    'stands behind a login': first401((_, response) => response.writeHead(401).end(page)),
    'expects another secret': first401((_, response) => response.writeHead(401).end()),
  }
  const messages: Record<string, string> = {}
  for (const [what, listener] of Object.entries(listeners)) {
    const [first, second] = await checkCallback(listener)
    messages[`${what}: without the secret`] = shown(first)
    messages[`${what}: with the secret`] = shown(second)
  }
  await using plain = await serve(respond(204))
  const { ca, tls } = createCertificate({ host: 'other.example' })
  await using other = await serve(respond(204), tls)
  await writeFile(join(fixture.folder, 'other.pem'), ca)
  const unreachable = {
    'nothing listens': [`https://127.0.0.1:${refusingPort}/`],
    'the port is without TLS': [plain.url.replace('http:', 'https:')],
    'the certificate is of another host': [other.url, '--callback-ca', join(fixture.folder, 'other.pem')],
  }
  for (const [what, [url = '', ...more]] of Object.entries(unreachable)) {
    const { steps } = await fixture.check([...callbackFlags(url), ...more], {})
    // OpenSSL has other words in another version.
    messages[`${what}: without the secret`] = shown(steps.at(-2)).replace(/ \([\dA-F]+:error:.*\)$/m, '')
    messages[`${what}: with the secret`] = shown(steps.at(-1))
  }
  const folder = new RegExp(fixture.folder, 'g')
  for (const what in messages) messages[what] = String(messages[what]).replace(folder, 'secrets')
  await expectPage('check-of-callbacks', messages)
})

test('--callback-ca names an authority to trust', async () => {
  await using app = await serve(toNodeHandler(receiver), fixture.emulator.tls)
  const untrusted = await fixture.check(callbackFlags(app.url), {})
  expect(untrusted.failures.at(-1)).toMatchObject({
    name: 'Callback without the secret',
    message: expect.stringContaining('--callback-ca'),
  })
  const ca = ['--callback-ca', join(fixture.folder, 'ca.pem')]
  const trusted = await fixture.check([...callbackFlags(app.url), ...ca], {})
  expect(trusted.outcomes.slice(-2)).toEqual([
    ['Callback without the secret', 'passed'],
    ['Callback with the secret', 'passed'],
  ])
})

test('the callback URL is reached through the proxy of the client', async () => {
  const host = 'app.intern.example'
  const { ca, tls } = createCertificate({ host })
  for (const name of ['https_proxy', 'http_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, undefined)
  const caFile = join(fixture.folder, 'app.pem')
  await writeFile(caFile, ca)
  await using app = await serve(toNodeHandler(receiver), tls)
  await using proxy = await ConnectProxy.listen({ to: app.url })
  vi.stubEnv('HTTPS_PROXY', proxy.url)
  const args = [...callbackFlags(`https://${host}/notifications`), '--callback-ca', caFile]
  const { outcomes } = await fixture.check(args, {})
  expect(new Set(proxy.requests.map(({ target }) => target))).toEqual(new Set([`${host}:443`]))
  expect(outcomes.slice(-2).map(([, outcome]) => outcome)).toEqual(['passed', 'passed'])
})
