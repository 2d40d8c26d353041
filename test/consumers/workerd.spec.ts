/** The web handler on workerd, the runtime of Cloudflare Workers, which allows no code generation. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../support/eventually.js'
import { node, project, tool } from './support/project.js'

interface Runtime {
  dispatchFetch(url: string, init?: object): Promise<Response>
  dispose(): Promise<void>
}

let worker: Runtime

beforeAll(async () => {
  const folder = await project(['worker.mjs'])
  const options = [
    '--bundle',
    '--format=esm',
    '--platform=neutral',
    '--main-fields=module,main',
    '--outfile=bundle.mjs',
  ]
  await node(folder, tool('esbuild/bin/esbuild'), 'worker.mjs', ...options)
  const { Miniflare } = await import(pathToFileURL(tool('miniflare/dist/src/index.js')).href)
  const script = await readFile(join(folder, 'bundle.mjs'), 'utf8')
  worker = new Miniflare({ modules: true, script, compatibilityDate: '2026-01-01' })
})
afterAll(() => worker?.dispose())

const deliveryOf = (id: string) =>
  JSON.stringify({
    subscriptionId: 1,
    notification: { id, time: 1, ver: '1.0', type: 'cxScoreUpdated', payload: {} },
  })

async function post(body: string, headers: Record<string, string> = {}): Promise<number> {
  const sent = { token: 'the-secret-of-the-worker', ...headers }
  return (await worker.dispatchFetch('https://worker.example.com', { method: 'POST', body, headers: sent }))
    .status
}

async function seen(): Promise<{ handled: string[]; problems: string[] }> {
  return (await (await worker.dispatchFetch('https://worker.example.com')).json()) as never
}

test('a delivery, and a slow handler with waitUntil', async () => {
  expect(await post(deliveryOf('plain'))).toBe(204)
  expect(await post(deliveryOf('slow'))).toBe(204)
  expect((await seen()).handled).toEqual(['plain'])
  await eventually(async () => expect((await seen()).handled).toContain('slow'))
  expect((await seen()).problems).toEqual([])
})

test('bodies that are no delivery, and a stranger', async () => {
  expect(await post('{')).toBe(204)
  expect(await post(deliveryOf('broken').replace('cxScoreUpdated', 'lowEnergyAgentOpened'))).toBe(204)
  expect(await post(deliveryOf('stranger'), { token: 'x' })).toBe(401)
  const problems = ['is not JSON', 'notification.payload.callId'].map((part) => expect.stringContaining(part))
  expect((await seen()).problems).toEqual(problems)
})
