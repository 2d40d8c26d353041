/** Bundles a program of this folder into one file, because many compilers at once would take longer than the test. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** @returns the path of the file, which is an ES module */
export async function bundleProgram(name: string, folder: string): Promise<string> {
  const outfile = join(folder, `${name}.mjs`)
  await build({
    entryPoints: [join(root, `test/integration/redis/programs/${name}.ts`)],
    outfile,
    tsconfig: join(root, 'tsconfig.json'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    // The package says that its modules have no side effects. Those of the programs have.
    ignoreAnnotations: true,
    // What is bundled of CommonJS packages needs it.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'error',
  })
  return outfile
}
