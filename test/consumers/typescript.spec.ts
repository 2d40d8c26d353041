import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { strictest } from '../support/strictest.js'
import { end, node, project, tool, writeJson } from './support/project.js'

const settingsOfAll = {
  target: 'es2023',
  lib: ['es2023'],
  types: ['node'],
  ...strictest,
  noUnusedLocals: true,
  skipLibCheck: false,
  rootDir: '.',
  outDir: 'compiled',
}

const settings = [
  { module: 'nodenext', moduleResolution: 'nodenext', type: 'module' },
  { module: 'nodenext', moduleResolution: 'nodenext', type: 'commonjs' },
  { module: 'node16', moduleResolution: 'node16', type: 'module' },
  { module: 'node16', moduleResolution: 'node16', type: 'commonjs' },
  { module: 'preserve', moduleResolution: 'bundler', type: 'module' },
]

const compilers = [
  {
    typescript: 'typescript',
    cases: [
      ...settings,
      { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0', type: 'commonjs' },
    ],
  },
  {
    // The oldest that is supported. It lacks options that came later, and some of which zod's own declarations speak.
    typescript: 'typescript-5.3',
    cases: settings
      .filter(({ module }) => module !== 'preserve')
      .map((each) => ({
        ...each,
        target: 'es2022',
        lib: ['es2023', 'esnext.disposable'],
        skipLibCheck: true,
        noUncheckedSideEffectImports: undefined,
      })),
  },
  // It knows no resolution but the modern ones any more.
  { typescript: 'typescript-7', cases: settings },
]

describe.each(compilers)('a project that is compiled by $typescript', ({ typescript, cases }) => {
  test.each(cases)('with module $module, resolution $moduleResolution, as $type', async (setting) => {
    const { type, ...compilerOptions } = setting
    const folder = await project(['typed.ts'])
    await writeJson(folder, 'package.json', { type })
    await writeJson(folder, 'tsconfig.json', { compilerOptions: { ...settingsOfAll, ...compilerOptions } })
    await node(folder, tool(`${typescript}/bin/tsc`))
    expect(await node(folder, 'compiled/typed.js')).toBe(`${end}\n`)
  })
})

test.each(['typescript', 'typescript-7'])('%s without `@types/node`, as by default', async (typescript) => {
  const folder = await project([])
  const code = `import { NotificationClient } from 'notification-subscriber'
import { toWebHandler } from 'notification-subscriber/webhooks'
import { receiver } from './receiver.cjs'
export const client = new NotificationClient({ baseUrl: 'https://a.example', auth: { getAccessToken: () => 'x' } })
export const route = toWebHandler(receiver)`
  await writeFile(join(folder, 'small.ts'), code)
  // A receiver of a CommonJS module has other declarations, and fits.
  const ofCommonJs = `import { DeliveryReceiver } from 'notification-subscriber/webhooks'
export const receiver = new DeliveryReceiver({ secrets: { token: 'a-secret-of-tests' } })`
  await writeFile(join(folder, 'receiver.cts'), ofCommonJs)
  await writeJson(folder, 'package.json', { type: 'module' })
  const compilerOptions = { ...settingsOfAll, lib: ['es2023', 'dom'], types: [], module: 'nodenext' }
  await writeJson(folder, 'tsconfig.json', { compilerOptions, files: ['small.ts'] })
  await node(folder, tool(`${typescript}/bin/tsc`))
})
