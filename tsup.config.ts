import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type Plugin, transform } from 'esbuild'
import { defineConfig, type Options } from 'tsup'
import { inlinePage } from './scripts/inline-page.js'

/** What is bundled from others takes less room with short names; source maps lead back to theirs. */
const shortThirdParties: Plugin = {
  name: 'short third parties',
  setup(build) {
    build.onLoad({ filter: /\bnode_modules\b.*\.js$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), {
        sourcefile: path,
        sourcemap: 'inline',
        minifySyntax: true,
        minifyIdentifiers: true,
      })
      return { contents: code }
    })
  },
}

/** On its way through the bundler a class may become the value of a variable, whose name is then its own. */
const classNames = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .flatMap((path) => [...readFileSync(`src/${path}`, 'utf8').matchAll(/\bclass (\w+)/g)])
  .map(([, name = '']) => name)

/** Doors of which there are two builds. Of the emulator, a tool, there is one: see scripts/finish-build.ts. */
const withoutEmulator = {
  index: 'src/index.ts',
  'webhooks/index': 'src/webhooks/index.ts',
  'stores/redis': 'src/stores/redis.ts',
  'spool/index': 'src/spool/index.ts',
}

const shared = {
  entry: {
    ...withoutEmulator,
    'emulator/index': 'src/emulator/index.ts',
  },
  platform: 'node',
  target: 'node20.18',
  sourcemap: true,
  treeshake: true,
  esbuildPlugins: [inlinePage, shortThirdParties],
  // What the doors have in common stands in chunks of its own: shipped once, loaded once.
  splitting: true,
  esbuildOptions(options) {
    options.minifySyntax = true
  },
  // Source maps lead back to what can be read. Functions and classes keep their names: stack traces and logs show them.
  minify: 'terser',
  terserOptions: {
    // Without terser's own map the maps would describe the code before it: every line of a stack trace would be wrong.
    sourceMap: true,
    compress: false,
    mangle: { toplevel: true, keep_fnames: true, reserved: classNames },
    keep_classnames: true,
    keep_fnames: true,
    // Above an uncaught error Node.js prints the whole line that threw: it must not be the whole file.
    format: { comments: false, preserve_annotations: true, max_line_len: 160 },
  },
  // Other runtimes know the modules of Node.js by this prefix only.
  removeNodeProtocol: false,
} satisfies Options

const undiciOfNpm = rewrite(
  // What Bun hands out under the bare name is a stand-in of its own, whose dispatchers send nothing.
  /(\bfrom |\bimport\(|\brequire\()"undici"/g,
  '$1"undici/index.js"',
)

const lazyRequire = rewrite(
  // Jest's CommonJS sandbox has no dynamic import. esbuild can replace it too, but hides the `require` in a
  // function, where bundlers do not find it.
  /\bimport\(("[^"]+")\)/g,
  'Promise.resolve().then(() => require($1))',
)

export default defineConfig([
  {
    ...shared,
    // Nobody imports the command line: one format will do. It finds the emulator by the package's name.
    entry: { ...withoutEmulator, 'cli/index': 'src/cli/index.ts' },
    external: ['notification-subscriber/emulator'],
    format: 'esm',
    plugins: [undiciOfNpm],
  },
  {
    ...shared,
    format: 'cjs',
    // p-memoize is ESM only: inlined, so that Jest and old tool chains can require the package.
    noExternal: ['p-memoize'],
    plugins: [undiciOfNpm, lazyRequire],
  },
  {
    ...shared,
    format: ['esm', 'cjs'],
    // TypeScript 6 reports the baseUrl that tsup's declaration build sets.
    // What is internal stands in no declaration, nor does what only that speaks of.
    dts: { only: true, compilerOptions: { ignoreDeprecations: '6.0', stripInternal: true } },
  },
])

/** A step of the build that changes every file of code. */
function rewrite(pattern: RegExp, replacement: string): NonNullable<Options['plugins']>[number] {
  return {
    name: `rewrite ${pattern}`,
    renderChunk: (code, { map = null }) => ({ code: code.replaceAll(pattern, replacement), map }),
  }
}
