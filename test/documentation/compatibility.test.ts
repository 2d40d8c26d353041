/** docs/compatibility.md names exactly what CI runs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod'
import { root } from './code-blocks.js'

const page = readFileSync(join(root, 'docs/compatibility.md'), 'utf8')
const rows = [...page.matchAll(/^\| `([\w@/-]+)` \| ([\d., ]+) \|/gm)].map(
  ([, name = '', versions = '']) => ({ name, versions: versions.trim().split(', ') }),
)

/** A package-lock.json, which npm writes. */
interface Lock {
  readonly packages: Readonly<Record<string, Partial<Record<'name' | 'version', string> & Dependencies>>>
}
type Dependencies = Record<'dependencies' | 'devDependencies' | 'optionalDependencies', object>

/** Names and versions of what the package and the projects of its tests install themselves. */
function installed(): { name: string; version: string }[] {
  const folders = ['.', 'test/consumers', 'test/integration/frameworks/next']
  return folders.flatMap((folder) => {
    const { packages }: Lock = JSON.parse(readFileSync(join(root, folder, 'package-lock.json'), 'utf8'))
    // The folder itself, and folders that it links.
    const projects = Object.entries(packages).filter(([path]) => !path.includes('node_modules'))
    return projects.flatMap(([path, own]) => {
      const aliases = { ...own.dependencies, ...own.devDependencies, ...own.optionalDependencies }
      return Object.keys(aliases).flatMap((alias) => {
        const { name = alias, version = '' } = packages[join(path, 'node_modules', alias)] ?? {}
        return version === '' ? [] : [{ name, version }]
      })
    })
  })
}

test.each(rows)('$name: the versions that are installed', ({ name, versions }) => {
  const found = installed().filter((each) => each.name === name)
  const named = (version: string) => versions.find((each) => `${version}.`.startsWith(`${each}.`))
  expect(new Set(found.map(({ version }) => named(version) ?? `${version} is not named`))).toEqual(
    new Set(versions),
  )
})

test('there are rows', () => expect(rows.length).toBeGreaterThan(20))

test('Node.js: the versions and systems of the workflow', () => {
  const workflow = readFileSync(join(root, '.github/workflows/ci.yml'), 'utf8')
  const axis = z.array(z.union([z.string(), z.number()]))
  const job = z.object({ strategy: z.object({ matrix: z.object({ os: axis, node: axis }) }) })
  const { matrix } = z.object({ jobs: z.object({ test: job }) }).parse(parse(workflow)).jobs.test.strategy
  expect(page).toContain(`| versions | ${matrix.node.join(', ')}: \`npm test\`, on ${matrix.os.join(', ')} |`)
})
