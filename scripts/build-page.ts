/** Makes the emulator's page, one file with its script and its style in it. */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const folder = fileURLToPath(new URL('../src/emulator/page/browser/', import.meta.url))

/** Writes the page, in one step, so that a process that reads it meanwhile finds the old or the new one. */
export async function writePage(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const unfinished = `${path}.${process.pid}`
  await writeFile(unfinished, await buildPage())
  await rename(unfinished, path)
}

/** The HTML, without anything that would have to be loaded. */
async function buildPage(): Promise<string> {
  const { outputFiles } = await bundle()
  const textOf = (name: string) => outputFiles.find(({ path }) => path.endsWith(name))?.text.trimEnd() ?? ''
  const template = await readFile(`${folder}page.html`, 'utf8')
  // A script ends at the first `</script` in it, also inside of a string.
  const script = textOf('.js').replaceAll('</script', '<\\/script')
  return template
    .replace('<!-- style -->', () => `<style>${textOf('.css')}</style>`)
    .replace('<!-- script -->', () => `<script>${script}</script>`)
}

/** Absolute paths of all the files that the page is made of. */
export async function pageSources(): Promise<string[]> {
  const { metafile } = await bundle()
  return Object.keys(metafile.inputs).map((path) => resolve(path))
}

function bundle() {
  return build({
    entryPoints: [`${folder}main.tsx`, `${folder}style.css`],
    outdir: 'out',
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    metafile: true,
  })
}
