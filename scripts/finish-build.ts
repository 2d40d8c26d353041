/** The last step of the build: what the bundler leaves to be done in `dist`. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { entryPoints } from './entry-points.js'

const dist = fileURLToPath(new URL('../dist', import.meta.url))

await writeThirdPartyLicenses()
for (const file of ['emulator/index.d.ts', 'emulator/index.d.cts'])
  await exportClassesAsTypes(join(dist, file))
for (const { output } of entryPoints) await markAsEsModule(join(dist, `${output}.cjs`))

/** Without this mark Jest's automock leaves out every export that is a getter, which are nearly all. */
async function markAsEsModule(file: string): Promise<void> {
  const code = await readFile(file, 'utf8')
  const mark = `'use strict';\n\nObject.defineProperty(exports, '__esModule', { value: true });\n`
  await writeFile(file, code.replace(/^'use strict';\n/, mark))
}

/** The bundler of declarations forgets that a class was exported as a type only: `new Emulator()` would compile. */
async function exportClassesAsTypes(file: string): Promise<void> {
  const values = new Set(Object.keys(await import(join(dist, 'emulator/index.js'))))
  const declarations = await readFile(file, 'utf8')
  const marked = declarations.replace(/^export \{ .* \};$/m, (line) =>
    line.replaceAll(/(?<=[{,] )(?!type )\w+/g, (name) => (values.has(name) ? name : `type ${name}`)),
  )
  await writeFile(file, marked)
}

/** The licences of the packages whose code the bundles contain require their texts in the package. */
async function writeThirdPartyLicenses(): Promise<void> {
  const packages = new Map<string, string>()
  for (const source of await bundledSources()) {
    const folder = /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/.exec(source)?.[0]
    if (folder !== undefined) packages.set(folder.replace(/^.*\bnode_modules\//, ''), folder)
  }
  const sorted = [...packages].sort(([a], [b]) => (a < b ? -1 : 1))
  const namesByText = new Map<string, string[]>()
  for (const [name, folder] of sorted) {
    const { title, text } = await licenceOf(name, folder)
    namesByText.set(text, [...(namesByText.get(text) ?? []), title])
  }
  const notices = [...namesByText].map(
    ([text, titles]) => `${'-'.repeat(80)}\n${titles.join('\n')}\n\n${text}\n`,
  )
  const introduction =
    'The files of this folder contain code of the packages below, each under the licence that stands with it.\n'
  await writeFile(join(dist, 'THIRD-PARTY-LICENSES.txt'), [introduction, ...notices].join('\n'))
}

async function licenceOf(name: string, folder: string): Promise<{ title: string; text: string }> {
  const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e(\.|$)/i.test(entry))
  if (file === undefined) throw new Error(`${name} is bundled but has no licence file`)
  const text = (await readFile(join(folder, file), 'utf8')).trim()
  return { title: `${name} ${version} (${license})`, text }
}

/** All the files that something in `dist` was made from, as the bundler listed them. */
async function bundledSources(): Promise<string[]> {
  const lists = (await readdir(dist)).filter((file) => /^metafile-\w+\.json$/.test(file))
  const sources = await Promise.all(
    lists.map(async (file) => {
      const { inputs }: { inputs: object } = JSON.parse(await readFile(join(dist, file), 'utf8'))
      await rm(join(dist, file))
      return Object.keys(inputs)
    }),
  )
  return sources.flat()
}
