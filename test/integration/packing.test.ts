/** `npm pack` and `npm publish` in a clone: no package without `dist` comes about. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, readdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
/** Without what `npm run` sets: its settings would come before those of the clone. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')))

/** What npm reads of a clone, in a folder that is gone at the end. */
async function clone(): Promise<
  AsyncDisposable & { readonly path: string; npm(...args: string[]): Promise<string> }
> {
  const { path, ...folder } = await temporaryFolder()
  for (const file of ['package.json', '.npmrc', 'README.md', 'LICENSE'])
    await cp(join(root, file), join(path, file))
  return { path, npm: async (...args) => (await run('npm', args, { cwd: path, env })).stdout, ...folder }
}

async function tarballsIn(path: string): Promise<string[]> {
  return (await readdir(path, { recursive: true })).filter((file) => file.endsWith('.tgz'))
}

test('npm pack without a build fails, and leaves no package', async () => {
  await using folder = await clone()
  await expect(folder.npm('pack')).rejects.toThrow('ENOENT')
  expect(await tarballsIn(folder.path)).toEqual([])
})

test('npm publish is refused before anything is sent', async () => {
  await using folder = await clone()
  const methods: (string | undefined)[] = []
  const registry = createServer((request, response) => {
    methods.push(request.method)
    response.writeHead(404).end()
  }).listen(0, '127.0.0.1')
  await once(registry, 'listening')
  const address = `//127.0.0.1:${(registry.address() as AddressInfo).port}/`
  await expect(
    folder.npm('publish', `--registry=http:${address}`, `--${address}:_authToken=t`),
  ).rejects.toThrow('EPRIVATE')
  registry.close()
  expect(methods.filter((method) => method !== 'GET')).toEqual([])
})
