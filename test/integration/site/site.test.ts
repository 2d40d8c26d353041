/** The reference site, as `npm run site` builds it, in a real browser. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listen } from '../../support/listen.js'
import { launchChromium } from '../browser/support.js'

const folder = mkdtempSync(join(tmpdir(), 'site-'))
const contentTypes: Record<string, string> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
}
const server = createServer(async ({ url = '/' }, response) => {
  const { pathname } = new URL(url, 'http://localhost')
  const file = join(folder, pathname === '/' ? 'index.html' : decodeURIComponent(pathname))
  response.setHeader('content-type', contentTypes[extname(file)] ?? 'application/octet-stream')
  await readFile(file).then(
    (content) => response.end(content),
    () => response.writeHead(404).end(),
  )
})
let browser: Browser | undefined
let origin: string

beforeAll(async () => {
  execFileSync('npm', ['run', '-s', 'site', '--', '--out', folder], { stdio: 'pipe' })
  origin = `http://127.0.0.1:${await listen(server)}`
  browser = await launchChromium()
}, 240_000)

afterAll(async () => {
  await browser?.close()
  server.close()
  rmSync(folder, { recursive: true })
})

const files = () =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'))
const textOf = (file: string) => readFileSync(join(folder, file), 'utf8')
const titleOf = (page: string) => /^# (.+)$/m.exec(readFileSync(page, 'utf8'))?.[1]?.replaceAll('`', '')

function first(kind: string): string {
  return files().find((file) => file.startsWith(`${kind}/`)) ?? `no page in ${kind}/`
}

/** All guides, and a reference page of each kind. */
function samples(): string[] {
  const guides = files().filter((file) => file.startsWith('documents/'))
  const kinds = ['classes', 'functions', 'interfaces', 'modules', 'types', 'variables']
  return ['index.html', 'modules.html', ...guides, ...kinds.map(first)]
}

async function openSite(options: Parameters<Browser['newContext']>[0] = {}) {
  const context = await (browser ?? expect.unreachable('no browser')).newContext(options)
  const page = await context.newPage()
  const requested = new Set<string>()
  const failed: string[] = []
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'data:' && protocol !== 'blob:') requested.add(origin)
  })
  page.on('response', (response) => {
    if (!response.ok()) failed.push(`${response.url()} ${response.status()}`)
  })
  page.on('pageerror', (error) => failed.push(String(error)))
  return { page, requested, failed, [Symbol.asyncDispose]: () => context.close() }
}

describe('npm run site', () => {
  test('has a page for every page of docs/, under its title', () => {
    const titles = readdirSync('docs')
      .filter((file) => file.endsWith('.md'))
      .map((file) => titleOf(join('docs', file)))
    const shown = files().map((file) =>
      /<h1[^>]*>(.*?)<\/h1>/s.exec(textOf(file))?.[1]?.replace(/<[^>]+>/g, ''),
    )
    expect(titles.filter((title) => !shown.some((text) => text?.includes(title ?? '-')))).toEqual([])
  })

  test('has a reference page for every export of every entry point', () => {
    const report = readFileSync('test/api/public-api.md', 'utf8').split('## Declarations')[0] ?? ''
    const lists = [...report.matchAll(/^(?:Values|Types): (.+)$/gm)].map(([, names = '']) => names)
    const names = lists.flatMap((list) => [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name))
    expect(names.length).toBeGreaterThan(100)
    const pages = new Set(files().map((file) => /([^./]+)\.html$/.exec(file)?.[1]))
    expect(names.filter((name) => !pages.has(name))).toEqual([])
  })

  test('has no violation of axe, requests nothing foreign or missing, and fits 360 pixels', async () => {
    await using site = await openSite({ reducedMotion: 'reduce' })
    const found: string[] = []
    for (const file of samples()) {
      await site.page.setViewportSize({ width: 1280, height: 800 })
      await site.page.goto(`${origin}/${file}`)
      // Colours are those of the style sheet: they are checked below, on fewer pages.
      found.push(...(await violations(site.page, (axe) => axe.disableRules('color-contrast'))))
      await site.page.setViewportSize({ width: 360, height: 800 })
      const width = await site.page.evaluate('document.documentElement.scrollWidth')
      if (Number(width) > 360) found.push(`${file} is ${width} pixels wide`)
    }
    expect([...found, ...site.failed]).toEqual([])
    expect([...site.requested]).toEqual([origin])
  })

  test.each(['light', 'dark'] as const)('has enough contrast in %s', async (colorScheme) => {
    await using site = await openSite({ colorScheme, reducedMotion: 'reduce' })
    const found: string[] = []
    for (const file of ['index.html', first('documents'), first('classes'), first('types')]) {
      await site.page.goto(`${origin}/${file}`)
      found.push(...(await violations(site.page, (axe) => axe.withRules('color-contrast'))))
    }
    expect(found).toEqual([])
  })
})

async function violations(page: Page, narrowed: (axe: AxeBuilder) => AxeBuilder): Promise<string[]> {
  const { violations } = await narrowed(new AxeBuilder({ page })).analyze()
  return violations.map(({ id, nodes }) => `${page.url()}: ${id} at ${nodes[0]?.html}`)
}
