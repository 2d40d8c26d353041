/** Which requests the page's server answers. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../../src/errors.js'

const emulator = await startEmulator({ page: true })
const { pageUrl = '' } = emulator
afterAll(() => emulator.close())

interface Sent {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** Sent as it is: `fetch` would not let a test choose the Host. */
async function send(url: string, { method = 'GET', headers = {}, body = '' }: Sent = {}) {
  const sent = request(url, { method, headers })
  sent.end(body)
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, headers: response.headers, text }
}

/** The first line of the answer to a request with this target, which no URL need be. */
async function statusLineFor(target: string): Promise<string> {
  const { port, host } = new URL(pageUrl)
  const socket = connect(Number(port), '127.0.0.1')
  socket.end(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  let answer = ''
  for await (const piece of socket) answer += piece
  return answer.split('\r\n', 1)[0] ?? ''
}

describe('the page server', () => {
  test('allows one script and one style by their hashes, and no storing, framing or referring', async () => {
    const { status, headers } = await send(pageUrl)
    expect(status).toBe(200)
    const policy = headers['content-security-policy']
    expect(policy).not.toContain('unsafe')
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^' ]+'; style-src 'sha256-[^' ]+';/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(headers).not.toHaveProperty('access-control-allow-origin')
  })

  test('listens on loopback whatever the host of the emulator is, and names a port that is taken', async () => {
    await using open = await startEmulator({ page: true, host: '0.0.0.0' })
    const { hostname, port } = new URL(open.pageUrl ?? '')
    expect(hostname).toBe('127.0.0.1')
    const taken = startEmulator({ page: { port: Number(port) } })
    await expect(taken).rejects.toBeInstanceOf(ConfigurationError)
    await expect(taken).rejects.toMatchObject({ issues: [{ path: ['page', 'port'] }] })
  })

  test.each([
    ['another Host', { headers: { host: 'attacker.example' } }, 403],
    ['a Host that begins as loopback', { headers: { host: '127.0.0.1.attacker.example:80' } }, 403],
    ['a request that a browser calls cross-site', { headers: { 'sec-fetch-site': 'cross-site' } }, 403],
    ['another method', { method: 'PUT' }, 405],
    ['a GET of an action', { method: 'GET', path: 'api/end' }, 405],
    ['an action that does not exist', { path: 'api/constructor' }, 404],
  ])('refuses %s', async (_what, { path = '', ...sent }: Sent & { path?: string }, expected) => {
    expect((await send(pageUrl + path, sent)).status).toBe(expected)
    expect((await send(pageUrl)).status).toBe(200)
  })

  test('answers through a forwarded port, with its number in Host and Origin', async () => {
    const headers = { host: 'localhost:9999', origin: 'http://localhost:9999' }
    expect((await send(pageUrl, { headers })).status).toBe(200)
    const action = { method: 'POST', body: '{}', headers: { ...headers, 'content-type': 'application/json' } }
    expect((await send(`${pageUrl}api/clear`, action)).status).toBe(200)
    action.headers.origin = pageUrl.slice(0, -1)
    expect((await send(`${pageUrl}api/clear`, action)).status).toBe(403)
  })

  test('has nothing at a path with another token', async () => {
    const { origin, pathname } = new URL(pageUrl)
    const wrong = pathname.replace(/[^/]/, (first) => (first === 'A' ? 'B' : 'A'))
    for (const path of ['/', '/version', '//version', wrong, `${wrong}version`]) {
      expect((await send(origin + path)).status).toBe(404)
    }
  })

  test.each(['//', '*', '//[', '/%', `/${'é'.repeat(100)}`])(
    'answers the strange target %s with 404 or 400',
    async (target) => {
      expect(await statusLineFor(target)).toMatch(/^HTTP\/1\.1 40[04] /)
    },
  )

  test('refuses a POST without its own Origin, of another type, too long, or that is no JSON', async () => {
    const { origin } = new URL(pageUrl)
    const post = async (headers: Record<string, string>, body = '{"subscriptionId":1}') =>
      (await send(`${pageUrl}api/end`, { method: 'POST', headers, body })).status
    const json = { 'content-type': 'application/json' }
    expect(await post(json)).toBe(403)
    expect(await post({ ...json, origin: 'https://attacker.example' })).toBe(403)
    expect(await post({ 'content-type': 'text/plain', origin })).toBe(415)
    expect(await post({ ...json, origin }, '{')).toBe(400)
    expect(await post({ ...json, origin }, JSON.stringify('x'.repeat(1_100_000)))).toBe(413)
    expect(await post({ ...json, origin })).toBe(200)
  })

  test('offers the certificate of the authority', async () => {
    const { status, text } = await send(`${pageUrl}ca.pem`)
    expect([status, text]).toEqual([200, emulator.ca])
  })
})
