/** The last step of the build: what the bundler leaves to be done in `dist`. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pageSources } from '../src/emulator/page/build-page.js'

const dist = fileURLToPath(new URL('../dist', import.meta.url))

await wrapEmulator()
await indentByTabs()
await relateSources()
await writeThirdPartyLicenses()

/**
 * An ES module around the CommonJS build of the emulator, and declarations around its declarations: a tool that no
 * production code loads, and a quarter of the package, is shipped once.
 */
async function wrapEmulator(): Promise<void> {
  const names = Object.keys(createRequire(import.meta.url)(join(dist, 'emulator/index.cjs')))
  await writeFile(
    join(dist, 'emulator/index.js'),
    `import emulator from './index.cjs'\nexport const { ${names.join(', ')} } = emulator\n`,
  )
  await writeFile(join(dist, 'emulator/index.d.ts'), "export * from './index.cjs'\n")
  await exportAsTypes(join(dist, 'emulator/index.d.cts'), new Set(names))
}

/** The bundler of declarations forgets that a class was exported as a type: `new Emulator()` would compile. */
async function exportAsTypes(file: string, values: ReadonlySet<string>): Promise<void> {
  const declarations = await readFile(file, 'utf8')
  const marked = declarations.replace(/^export \{ .* \};$/m, (line) =>
    line.replaceAll(/(?<=[{,] )(?!type )\w+/g, (name) => (values.has(name) ? name : `type ${name}`)),
  )
  await writeFile(file, marked)
}

/** The declarations come indented by four spaces at each level, mostly of comments: a few kilobytes of the package. */
async function indentByTabs(): Promise<void> {
  const files = await readdir(dist, { recursive: true })
  for (const path of files.filter((file) => /\.d\.c?ts$/.test(file)).map((file) => join(dist, file))) {
    const text = await readFile(path, 'utf8')
    await writeFile(
      path,
      text.replace(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4)),
    )
  }
}

/** Source maps name what has no source, the bundler's own lines, by the absolute path of the file that was built. */
async function relateSources(): Promise<void> {
  const files = await readdir(dist, { recursive: true })
  for (const path of files.filter((file) => file.endsWith('.map')).map((file) => join(dist, file))) {
    const map: { sources: string[] } = JSON.parse(await readFile(path, 'utf8'))
    const sources = map.sources.map((source) =>
      isAbsolute(source) ? relative(dirname(path), source) : source,
    )
    await writeFile(path, JSON.stringify({ ...map, sources }))
  }
}

/** The licences of the packages whose code the bundles contain demand that their texts come along. */
async function writeThirdPartyLicenses(): Promise<void> {
  const packages = new Map<string, string>()
  for (const source of await bundledSources()) {
    const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source)?.[0]
    if (folder !== undefined) packages.set(folder.replace(/^.*\/node_modules\//, ''), folder)
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

/** Absolute paths of all the files that something in `dist` was made from. */
async function bundledSources(): Promise<string[]> {
  const files = await readdir(dist, { recursive: true })
  const maps = files.filter((file) => file.endsWith('.map')).map((file) => join(dist, file))
  const sources = await Promise.all(
    maps.map(async (map) => {
      const { sources }: { sources: string[] } = JSON.parse(await readFile(map, 'utf8'))
      return sources.map((source) => resolve(dirname(map), source))
    }),
  )
  // The page is text in what was built, so that no source map knows of what is in it.
  return [...sources.flat(), ...(await pageSources())]
}
