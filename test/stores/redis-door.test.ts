import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('the redis door loads no Redis library, nor anything else but the errors', async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['src/stores/redis.ts'],
    bundle: true,
    packages: 'external',
    format: 'esm',
    write: false,
    metafile: true,
  })
  const [output] = Object.values(metafile.outputs)
  expect(output?.imports).toEqual([])
  expect(Object.keys(output?.inputs ?? {}).sort()).toEqual(['src/errors.ts', 'src/stores/redis.ts'])
})
