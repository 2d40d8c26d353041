import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type BuildOptions, build } from 'esbuild'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

async function bundle(contents: string, options: Pick<BuildOptions, 'platform' | 'minify' | 'external'>) {
  const { metafile, outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    alias: { 'notification-subscriber/webhooks': './src/webhooks/index.ts' },
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    logLevel: 'silent',
    ...options,
  })
  const [output] = Object.values(metafile.outputs)
  return {
    code: outputFiles[0]?.contents ?? new Uint8Array(),
    imports: output?.imports.map(({ path }) => path) ?? [],
    inputs: Object.keys(output?.inputs ?? {}).filter((path) => path !== '<stdin>'),
  }
}

test('the entry point webhooks needs zod only, and holds no client code', async () => {
  const everything = "export * from 'notification-subscriber/webhooks'"
  const { imports, inputs } = await bundle(everything, { platform: 'node', external: ['zod'] })
  expect(new Set(imports)).toEqual(new Set(['zod', 'zod/v4/core', 'zod/locales']))
  const allowed = /^src\/(webhooks\/.*|shared\/.*|errors|logger|notification-types)\.ts$/
  expect(inputs.filter((path) => !allowed.test(path))).toEqual([])
})

test('an app that receives notifications on an edge runtime takes at most 49 KB gzip, zod included', async () => {
  const app = `
    import { DeliveryReceiver, toWebHandler } from 'notification-subscriber/webhooks'
    const receiver = new DeliveryReceiver({ secrets: { token: TOKEN } })
      .on('lowEnergyAgentOpened', ({ payload }) => console.log(payload.callId))
    export default { fetch: toWebHandler(receiver) }`
  const { code, imports } = await bundle(app, { platform: 'browser', minify: true })
  const { length } = gzipSync(code)
  console.info(`An app of five lines on notification-subscriber/webhooks: ${length} bytes gzip`)
  expect(imports).toEqual([])
  // Less would mean that something is missing from the bundle.
  expect(length).toBeGreaterThan(20_000)
  expect(length).toBeLessThanOrEqual(49_000)
})
