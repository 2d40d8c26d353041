/** What users import. The list is `exports` of package.json: another entry point is written there, and has one source file. */
import { readFileSync } from 'node:fs'

interface EntryPoint {
  /** As users import it. */
  readonly name: string
  /** In `dist/`, without ending. */
  readonly output: string
  /** From the root of the repository. */
  readonly source: string
}

const { name: packageName, exports } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)

export const entryPoints: readonly EntryPoint[] = Object.entries<{ import?: { default: string } }>(exports)
  // Others are files of data.
  .flatMap(([path, target]) => (target.import === undefined ? [] : [[path, target.import.default] as const]))
  .map(([path, file]) => {
    const output = file.replace(/^\.\/dist\/|\.js$/g, '')
    return { name: packageName + path.slice(1), output, source: `src/${output}.ts` }
  })
