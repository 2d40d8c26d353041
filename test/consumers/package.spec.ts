import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
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

test('only the build and the documents of the root are published', async () => {
  expect((await readdir(installed)).sort()).toEqual([
    'AGENTS.md',
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

test('it installs its three dependencies and their dependencies only', async () => {
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

test('the licence of every bundled package is published, too', async () => {
  const files = (await publishedFiles()).filter((file) => /\.(js|cjs)$/.test(file))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  // Above the code of each bundled file the bundler names that file.
  const bundled = texts
    .flatMap((text) => [...text.matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm)])
    .map(([, name]) => name)
  const licenses = await readFile(join(installed, 'dist/THIRD-PARTY-LICENSES.txt'), 'utf8')
  const notices = licenses.split(`${'-'.repeat(80)}\n`).slice(1)
  // Above each text stand the packages that have it, one in a line.
  const named = notices.flatMap((notice) => notice.split('\n\n')[0]?.split('\n') ?? [])
  expect(named.map((line) => line.split(' ')[0]).sort()).toEqual([...new Set(bundled)].sort())
  for (const notice of notices) {
    expect(notice).toMatch(/^Copyright \(c\) .+/m)
    expect(notice).toMatch(/The above copyright notice and this permission notice shall be\s+included/)
  }
})

test.each(['publint', 'attw'])('%s has nothing to object to', async (tool) => {
  const folder = await project([`${tool}.mjs`])
  expect(JSON.parse(await node(folder, `${tool}.mjs`, installed, inject('tarball')))).toEqual([])
})
