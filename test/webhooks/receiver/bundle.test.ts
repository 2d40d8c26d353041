import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

test('the door needs zod only, and holds no client code', async () => {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('../../../src/webhooks/index.ts', import.meta.url))],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    external: ['zod'],
    logLevel: 'silent',
  })
  const [output] = Object.values(metafile.outputs)
  expect(new Set(output?.imports.map(({ path }) => path))).toEqual(new Set(['zod']))
  const allowed = /(^|\/)src\/(webhooks\/.*|shared\/.*|errors|logger|notification-types)\.ts$/
  expect(Object.keys(output?.inputs ?? {}).filter((path) => !allowed.test(path))).toEqual([])
})
