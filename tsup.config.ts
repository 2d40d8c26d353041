import { buildSync, type Plugin } from 'esbuild'
import { defineConfig, type Options } from 'tsup'
import { entryPoints } from './scripts/entry-points.js'

const shared = {
  entry: Object.fromEntries(entryPoints.map(({ output, source }) => [output, source])),
  platform: 'node',
  target: 'node20.19',
  // What the entry points share stands in chunks of its own, so that an error of one is an instance of the other's class.
  splitting: true,
  treeshake: true,
  // Other runtimes know the modules of Node.js by their prefix only.
  removeNodeProtocol: false,
  // scripts/finish-build.ts reads there whose code was bundled.
  metafile: true,
} satisfies Options

/** Bun hands out a stand-in under the bare name, whose dispatchers send nothing. */
const undiciOfNpm = rewrite(/(\bfrom |\bimport\(|\brequire\()"undici"/g, '$1"undici/index.js"')

/** Jest's CommonJS sandbox has no dynamic import. esbuild's replacement hides the `require` from bundlers. */
const lazyRequire = rewrite(/\bimport\(("[^"]+")\)/g, 'Promise.resolve().then(() => require($1))')

/** commander is CommonJS. The helpers for that would stand in the chunk that every entry point loads. */
const commanderAsEsModule = {
  name: 'commander as an ES module',
  setup(build) {
    build.onLoad({ filter: /\bcommander\/esm\.mjs$/ }, ({ path }) => {
      const module = { bundle: true, format: 'esm', platform: 'node', write: false } as const
      const { outputFiles } = buildSync({ entryPoints: [path], ...module })
      const code = outputFiles.map(({ text }) => text).join('')
      return { contents: code.replaceAll(/\b__require\(/g, 'globalThis.process.getBuiltinModule(') }
    })
  },
} satisfies Plugin

export default defineConfig([
  {
    ...shared,
    // The command line is never imported: one format is enough.
    entry: { ...shared.entry, 'cli/index': 'src/cli/index.ts' },
    format: 'esm',
    plugins: [undiciOfNpm],
    esbuildPlugins: [commanderAsEsModule],
  },
  {
    ...shared,
    format: 'cjs',
    // p-memoize is an ES module only: inlined, Jest and old tool chains can require the package.
    noExternal: ['p-memoize'],
    plugins: [undiciOfNpm, lazyRequire],
  },
  {
    entry: shared.entry,
    format: ['esm', 'cjs'],
    // TypeScript 6 reports the baseUrl that tsup's declaration build sets.
    dts: {
      only: true,
      compilerOptions: { ignoreDeprecations: '6.0', stripInternal: true },
      // For `AsyncDisposable`: TypeScript 6 no longer looks for `@types/node`, which has it, by itself.
      banner: '/// <reference lib="esnext.disposable" />',
    },
  },
])

/** A step of the build that changes every file of code. */
function rewrite(pattern: RegExp, replacement: string): NonNullable<Options['plugins']>[number] {
  return {
    name: `rewrite ${pattern}`,
    renderChunk: (code) => ({ code: code.replaceAll(pattern, replacement) }),
  }
}
