import { once } from 'node:events'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, inject, test } from 'vitest'
import { node, project } from './support/project.js'
import { start } from './support/run.js'

const installed = join(inject('bare'), 'node_modules/notification-subscriber')

async function publishedFiles(): Promise<string[]> {
  const entries = await readdir(installed, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}

test('the build and the documents of the root are published, nothing else', async () => {
  expect((await readdir(installed)).sort()).toEqual([
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'dist',
    'docs',
    'examples',
    'package.json',
  ])
})

test('with it come its three dependencies and what they need', async () => {
  const lock = await readFile(join(inject('bare'), 'node_modules/.package-lock.json'), 'utf8')
  expect(Object.keys(JSON.parse(lock).packages).sort()).toEqual([
    'node_modules/mimic-function',
    'node_modules/notification-subscriber',
    'node_modules/p-memoize',
    'node_modules/type-fest',
    'node_modules/undici',
    'node_modules/zod',
  ])
})

test('unpacked it is at most 900 KB, source maps aside', async () => {
  const files = (await publishedFiles()).filter((file) => !file.endsWith('.map'))
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size))
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(900_000)
})

test('every file of code has a source map, which leads stack traces to the sources', async () => {
  const files = await publishedFiles()
  // The ES module of the emulator is two lines that the build writes around the CommonJS one: it has no source.
  const code = files.filter((file) => /\.(js|cjs)$/.test(file) && !file.endsWith('emulator/index.js'))
  expect(files).toEqual(expect.arrayContaining(code.map((file) => `${file}.map`)))

  const folder = await project(['stack-trace.mjs', 'stack-trace.cjs'])
  for (const program of ['stack-trace.mjs', 'stack-trace.cjs']) {
    const printed = await node(folder, '--enable-source-maps', program)
    expect(printed).toMatch(/^ConfigurationError: .*\n +at .*\bsrc\/[\w/-]+\.ts:\d+:\d+\)\n/)
    // The right file, not any: maps of the code before it was minified named one place for everything.
    expect(printed).toMatch(/ at new NotificationClient .*\/src\/client\/notification-client\.ts:\d+:\d+\)/)
  }
})

test.each(['uncaught.mjs', 'uncaught.cjs'])(
  'an uncaught error prints less than 3 KB: %s',
  async (program) => {
    const folder = await project([program])
    const child = start(process.execPath, [program], folder)
    const [printed] = await Promise.all([text(child.stderr), once(child, 'close')])
    expect(printed).toContain('NOTIFICATION_BASE_URL')
    // Above the message stands the line of code that threw, whole.
    expect(printed.length).toBeLessThan(3_000)
  },
)

test('the licence of every package whose code is bundled comes along', async () => {
  const maps = (await publishedFiles()).filter((file) => file.endsWith('.map'))
  const sources = await Promise.all(maps.map(async (map) => JSON.parse(await readFile(map, 'utf8')).sources))
  const bundled = sources
    .flat()
    .map((source: string) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1])
    .filter((name) => name !== undefined)
  // What the emulator's page is made with stands in no map: the page is one text.
  bundled.push('preact')
  const licenses = await readFile(join(installed, 'dist/THIRD-PARTY-LICENSES.txt'), 'utf8')
  const notices = licenses.split(`${'-'.repeat(80)}\n`).slice(1)
  // Above each text stand the packages that have it, one in a line.
  const named = notices.flatMap((notice) => notice.split('\n\n')[0]?.split('\n') ?? [])
  expect(named.map((line) => line.split(' ')[0]).sort()).toEqual([...new Set(bundled)].sort())
  for (const notice of notices) {
    expect(notice).toMatch(/^Copyright \(c\) .+/m)
    expect(notice).toContain('The above copyright notice and this permission notice shall be included')
  }
})

test.each(['publint', 'attw'])('%s has nothing to object to', async (tool) => {
  const folder = await project([`${tool}.mjs`])
  expect(JSON.parse(await node(folder, `${tool}.mjs`, installed, inject('tarball')))).toEqual([])
})
