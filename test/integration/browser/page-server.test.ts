/** What a browser lets other pages and the page itself do; test/emulator/page/server.test.ts has the rest. */
import { createServer } from 'node:http'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listen } from '../../support/listen.js'
import { launchChromium, World } from './support.js'

let browser: Browser

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser.close())

test('the page server lets no page of another origin read, post or frame, even if it knows the address', async () => {
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
          source.onopen = () => resolve('read')
        })`),
    ).toBe('refused')
    expect(world.emulator.subscriptions).toHaveLength(1)
  } finally {
    await context.close()
    foreign.close()
    foreign.closeAllConnections()
  }
})
