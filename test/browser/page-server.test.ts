/** Who may use the page: nobody but its own origin, and only through what its policy allows. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmulator } from 'notification-subscriber/emulator'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../support/listen.js'
import { launchChromium, openPage, World } from './support.js'

let browser: Browser

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser.close())

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

describe('the page server', () => {
  it('allows one script and one style by their hashes, nothing unsafe, and no storing, framing or referring', async () => {
    await using world = await World.start()
    const { status, headers } = await send(world.pageUrl)
    expect(status).toBe(200)
    const policy = headers['content-security-policy']
    expect(policy).not.toContain('unsafe')
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^' ]+'; style-src 'sha256-[^' ]+';/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(headers).not.toHaveProperty('access-control-allow-origin')
  })

  it('listens on loopback whatever the host of the emulator is, and says which port is taken', async () => {
    await using emulator = await startEmulator({ page: true, host: '0.0.0.0' })
    const { hostname, port } = new URL(emulator.pageUrl ?? '')
    expect(hostname).toBe('127.0.0.1')
    const problem = `${port} of 127.0.0.1 is taken: choose another, or 0 for any free one`
    await expect(startEmulator({ page: { port: Number(port) } })).rejects.toMatchObject({
      code: 'CONFIGURATION',
      message: `The page cannot be served: \`page.port\`: ${problem}.`,
      issues: [{ path: ['page', 'port'], message: problem }],
    })
  })

  it.each([
    ['another Host', { headers: { host: 'attacker.example' } }, 403],
    ['what a browser calls another site', { headers: { 'sec-fetch-site': 'cross-site' } }, 403],
    ['another method', { method: 'PUT' }, 405],
  ])('refuses %s', async (_what, sent, expected) => {
    await using world = await World.start()
    expect((await send(world.pageUrl, sent)).status).toBe(expected)
    expect((await send(world.pageUrl)).status).toBe(200)
  })

  it('knows nothing at a path with another token', async () => {
    await using world = await World.start()
    const { origin, pathname } = new URL(world.pageUrl)
    const wrong = pathname.replace(/[^/]/, (first) => (first === 'A' ? 'B' : 'A'))
    for (const path of ['/', '/events', '//events', wrong, `${wrong}events`]) {
      expect((await send(origin + path)).status).toBe(404)
    }
  })

  it('gives a reader that was slow everything that it missed', async () => {
    await using emulator = await startEmulator({ page: true })
    const sent = request(`${emulator.pageUrl}events`)
    sent.end()
    const [events] = await once(sent, 'response')
    events.setEncoding('utf8')
    await once(events, 'data')
    events.pause()
    const fetchPath = (path: string) => emulator.fetch(new Request(emulator.baseUrl + path))
    // More than what stands between the server and a reader takes.
    for (let i = 0; i < 1_000; i++) await fetchPath(`/${'x'.repeat(30_000)}`)
    await sleep(300)
    await fetchPath('/last')
    await sleep(300)
    let text = ''
    for await (const chunk of events) {
      text = text.slice(-100) + chunk
      if (text.includes('"/last"')) break
    }
    expect(text).toContain('"path":"/last"')
  })

  it('refuses a POST without its own Origin, of another type, too long, or that is no JSON', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    const { origin } = new URL(world.pageUrl)
    const post = async (headers: Record<string, string>, body = '{"subscriptionId":1}') =>
      (await send(`${world.pageUrl}api/end`, { method: 'POST', headers, body })).status
    const json = { 'content-type': 'application/json' }
    expect(await post(json)).toBe(403)
    expect(await post({ ...json, origin: 'https://attacker.example' })).toBe(403)
    expect(await post({ ...json, origin: 'null' })).toBe(403)
    expect(await post({ 'content-type': 'text/plain', origin })).toBe(415)
    expect(await post({ ...json, origin }, '{')).toBe(400)
    expect(await post({ ...json, origin }, '{}')).toBe(400)
    expect(await post({ ...json, origin }, JSON.stringify('x'.repeat(1_100_000)))).toBe(413)
    expect(world.emulator.subscriptions).toHaveLength(1)
    expect(await post({ ...json, origin })).toBe(200)
    expect(world.emulator.subscriptions).toHaveLength(0)
  })

  it('lets a page of another origin neither read nor post nor frame, even one that knows the address', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    const foreign = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Foreign</title>')
    })
    const port = await listen(foreign)
    const context = await browser.newContext()
    try {
      const page = await context.newPage()
      await page.goto(`http://127.0.0.1:${port}/`)
      const attempt = (script: string) => page.evaluate(`(${script})(${JSON.stringify(world.pageUrl)})`)
      const outcome = ".then((answer) => 'status ' + answer.status, () => 'refused')"
      expect(await attempt(`(url) => fetch(url)${outcome}`)).toBe('refused')
      expect(await attempt(`(url) => fetch(url + 'ca.pem')${outcome}`)).toBe('refused')
      const body = `{ method: 'POST', body: '{"subscriptionId":1}', headers: { 'content-type': 'application/json' } }`
      expect(await attempt(`(url) => fetch(url + 'api/end', ${body})${outcome}`)).toBe('refused')
      const plain = `{ method: 'POST', body: '{"subscriptionId":1}', mode: 'no-cors' }`
      await attempt(`(url) => fetch(url + 'api/end', ${plain})${outcome}`)
      expect(
        await attempt(`(url) => new Promise((resolve) => {
          const source = new EventSource(url + 'events')
          source.onerror = () => resolve('refused')
          source.addEventListener('snapshot', () => resolve('read'))
        })`),
      ).toBe('refused')
      expect(world.emulator.subscriptions).toHaveLength(1)
    } finally {
      await context.close()
      foreign.close()
      foreign.closeAllConnections()
    }
  })

  it('breaks no rule of its policy in a browser, and asks nobody else for anything', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl)
    const { page, problems, origins } = opened
    await world.subscribe('alice')
    await page
      .getByRole('listbox')
      .getByRole('option', { name: /alice #1/ })
      .waitFor()
    expect(problems).toEqual([])
    expect([...origins]).toEqual([new URL(world.pageUrl).origin])
  })
})
