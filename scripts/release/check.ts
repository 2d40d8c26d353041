/**
 * Checks everything about a release that needs no network, and writes what the release gets into `release/`: its notes
 * from CHANGELOG.md, and what the package contains and needs (an SBOM in the format of CycloneDX). After `npm run build`:
 *
 *     tsx scripts/release/check.ts
 */
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { notesOf, problemsOf } from './changelog.js'

const { GITHUB_REF_TYPE, GITHUB_REF_NAME, GITHUB_REPOSITORY, GITHUB_SERVER_URL } = process.env
const manifest = JSON.parse(await readFile('package.json', 'utf8'))
const { name, version }: { name: string; version: string } = manifest
const changelog = await readFile('CHANGELOG.md', 'utf8')

const packed = listOfPackage()
const problems = [
  ...problemsOf(changelog, version).map((problem) => `CHANGELOG.md: ${problem}`),
  ...problemsOfManifest(),
  ...(await problemsOfPackage()),
]
if (problems.length > 0) {
  console.error(`${name} ${version} cannot be released:\n${problems.map((each) => `- ${each}\n`).join('')}`)
  process.exit(1)
}

const filesUrl = GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}/blob/v${version}`
const sbom = await billOfMaterials()
await mkdir('release', { recursive: true })
await writeFile('release/notes.md', notesOf(changelog, version, filesUrl))
await writeFile('release/sbom.cdx.json', `${JSON.stringify(sbom, undefined, 2)}\n`)
const packages = sbom.components.map((each) => each['bom-ref']).join(', ')
console.log(`${name} ${version} can be released: ${packed.files.length} files, ${packed.size} bytes packed.`)
console.log(
  `release/notes.md and release/sbom.cdx.json are written. The package contains or needs: ${packages}`,
)

function problemsOfManifest(): string[] {
  const found: string[] = []
  // The workflow adds the repository in which it runs: package.json names none.
  for (const field of ['repository', 'homepage', 'bugs']) {
    if (manifest[field] !== undefined)
      found.push(`package.json: "${field}" is set by the release workflow alone`)
  }
  if (manifest.private !== true)
    found.push('package.json: "private" keeps `npm publish` to the release workflow')
  if (GITHUB_REF_TYPE === 'tag' && GITHUB_REF_NAME !== `v${version}`) {
    found.push(`The tag is ${GITHUB_REF_NAME}, and package.json says ${version}`)
  }
  return found
}

function listOfPackage(): { readonly files: readonly { readonly path: string }[]; readonly size: number } {
  return JSON.parse(npm('pack', '--dry-run', '--json'))[0]
}

async function problemsOfPackage(): Promise<string[]> {
  const paths = new Set(packed.files.map(({ path }) => path))
  const named = [manifest.exports, manifest.bin, manifest.main, manifest.types].flatMap(pathsIn)
  const missing = [...named, 'LICENSE'].filter((path) => !paths.has(path))
  const built = await readFile('dist/openapi.json', 'utf8').then(JSON.parse, () => undefined)
  return [
    ...missing.map((path) => `The package lacks ${path}: run npm run build`),
    ...(built?.info.version === version ? [] : [`dist was not built as ${version}: run npm run build`]),
  ]
}

/** The files that a field of package.json names, however deep. */
function pathsIn(value: unknown): string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(pathsIn)
  return [String(value).replace(/^\.\//, '')]
}

interface BillOfMaterials {
  readonly metadata: { readonly component: { name: string } }
  components: readonly { readonly 'bom-ref': string }[]
  dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
}

/**
 * What npm knows, without the tools of development, and with those packages whose code `dist` contains. `--omit dev`
 * would leave out zod, which tools need, too.
 */
async function billOfMaterials(): Promise<BillOfMaterials> {
  const all: BillOfMaterials = JSON.parse(npm('sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'))
  const edges = new Map(all.dependencies.map(({ ref, dependsOn = [] }) => [ref, dependsOn]))
  const own = `${name}@${version}`
  const licences = await readFile('dist/THIRD-PARTY-LICENSES.txt', 'utf8')
  const bundled = [...licences.matchAll(/^(\S+) (\d\S*) \(.+\)$/gm)].map(([, title, of]) => `${title}@${of}`)
  const needed = Object.keys(manifest.dependencies).map((each) =>
    edges.get(own)?.find((ref) => ref.startsWith(`${each}@`) && ref.lastIndexOf('@') === each.length),
  )
  const direct = [...needed, ...bundled].filter((ref) => ref !== undefined)
  const kept = new Set<string>()
  const add = (ref: string) => {
    if (kept.has(ref)) return
    kept.add(ref)
    for (const next of edges.get(ref) ?? []) add(next)
  }
  direct.forEach(add)
  const unknown = direct.filter((ref) => !edges.has(ref))
  if (unknown.length > 0) throw new Error(`npm sbom does not list ${unknown.join(', ')}`)
  // npm names a package by its folder.
  all.metadata.component.name = name
  all.components = all.components.filter((each) => kept.has(each['bom-ref']))
  all.dependencies = [
    { ref: own, dependsOn: [...new Set(direct)] },
    ...all.dependencies.filter(({ ref }) => kept.has(ref)),
  ]
  return all
}

function npm(...args: string[]): string {
  return execFileSync('npm', args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}
