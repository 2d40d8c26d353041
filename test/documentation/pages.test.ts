/** What the pages promise is there: options, errors, files and commands. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as client from 'notification-subscriber'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { entryPoints } from '../../scripts/entry-points.js'
import { pages, root } from './code-blocks.js'

const allPages = [...pages, 'AGENTS.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const proseOf = (file: string) => textOf(file).replaceAll(/^```.*?^```$/gms, '')
const headingsOf = (page: string) =>
  [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading.replaceAll('`', ''))
/** As GitHub and npm make the anchor of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')

test('README.md has at most 600 words beside its code: what is longer belongs on a page', () => {
  expect(proseOf('README.md').split(/\s+/).length).toBeLessThanOrEqual(600)
})

test('README.md names every entry point, and docs/index.md every page', () => {
  for (const { name } of entryPoints) expect(textOf('README.md')).toContain(`\`${name}\``)
  const rest = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md') && file !== 'index.md')
  for (const file of rest) expect(textOf('docs/index.md')).toContain(`](${file})`)
})

describe('the tables of the pages', () => {
  test.each<[page: string, names: readonly string[]]>([
    [
      'docs/client.md',
      [
        ...propertiesOf('src/client/options.ts', 'NotificationClientOptions').filter(
          (name) => name !== 'retry',
        ),
        ...propertiesOf('src/http/retry.ts', 'RetryOptions').map((name) => `retry.${name}`),
        ...propertiesOf('src/auth/credentials.ts', 'ClientCredentialsAuth'),
      ],
    ],
    [
      'docs/receiver.md',
      ['OptionalOptions', 'Authenticated'].flatMap((name) => propertiesOf('src/webhooks/options.ts', name)),
    ],
    ['docs/emulator.md', [...propertiesOf('src/emulator/options.ts', 'EmulatorOptions'), 'page.port']],
    ['docs/emulator.md', membersOf('src/emulator/emulator.ts', 'Emulator')],
    ['docs/spool.md', propertiesOf('src/spool/spool-options.ts', 'DeliverySpoolOptions')],
  ])('of %s name every option, and every member: %#', (page, names) => {
    expect(names.length).toBeGreaterThan(2)
    expect(missingFrom(page, names)).toEqual([])
  })

  test('name every error, with its code', () => {
    const errors = Object.entries(client).filter(
      ([name]) => name.endsWith('Error') && name !== 'NotificationError',
    )
    expect(errors).toHaveLength(13)
    const rows = textOf('docs/errors.md').split('\n')
    for (const [name] of errors) {
      const code =
        name === 'ApiError' ? 'API' : name.replace(/Error$/, '').replace(/(?<=[a-z])(?=[A-Z])/g, '_')
      expect(rows).toContainEqual(expect.stringContaining(`| \`${code.toUpperCase()}\` \`${name}\` |`))
    }
  })
})

describe.each(allPages)('%s', (page) => {
  test('links to files that exist', () => {
    const links = [...proseOf(page).matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, link = '']) => link)
    expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([])
  })

  test('links to headings that exist', () => {
    const links = [...proseOf(page).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)]
    const dead = links.filter(([, file, anchor = '']) => {
      const target = file ? join(dirname(page), file) : page
      return !headingsOf(target).map(anchorOf).includes(anchor)
    })
    expect(dead.map(([link]) => link)).toEqual([])
  })
})

test.each(['src', 'test'])('docstrings, comments and titles in %s cite sections that exist', (folder) => {
  const dead: string[] = []
  for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    if (!/\.tsx?$/.test(file) || file.includes('node_modules')) continue
    // As one line, because a comment may break inside of a citation.
    const text = textOf(join(folder, file)).replace(/\s*\n\s*(?:\*|\/\/)?\s*/g, ' ')
    for (const [, page = '', cited = ''] of text.matchAll(/\b(docs\/[a-z]+\.md), ([A-Z][^);:.]*)/g)) {
      const headings = headingsOf(page)
      const isHeading = (section: string) => headings.includes(section)
      const sections = isHeading(cited) ? [cited] : cited.split(/, | and /)
      dead.push(...sections.filter((each) => !isHeading(each)).map((each) => `${file}: ${page}, ${each}`))
    }
  }
  expect(dead).toEqual([])
})

test.each(allPages)('%s names commands that exist', (page) => {
  const scripts = [...textOf(page).matchAll(/\bnpm run ([\w:-]+)/g)].map(([, script = '']) => script)
  expect(scripts.filter((script) => !(script in manifest.scripts))).toEqual([])
  // Installed, the package has its files elsewhere.
  const scriptFile = /\bnpx tsx (?:node_modules\/notification-subscriber\/)?(\S+\.m?ts)/g
  const files = [...textOf(page).matchAll(scriptFile)].map(([, file = '']) => file)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
})

test('every exported value occurs on a page', () => {
  const report = textOf('test/api/public-api.md').split('## Declarations')[0] ?? ''
  const lists = [...report.matchAll(/^Values: (.+)$/gm)].map(([, names = '']) => names)
  const names = new Set(lists.flatMap((list) => [...list.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)))
  expect(names.size).toBeGreaterThan(30)
  const words = new Set(pages.flatMap((page) => textOf(page).match(/\w+/g) ?? []))
  expect([...names].filter((name) => !words.has(name))).toEqual([])
})

/** The names that stand in the first cell of no row. */
function missingFrom(page: string, names: readonly string[]): string[] {
  const cells = textOf(page)
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((row) => row.split('|')[1] ?? '')
  return names.filter(
    (name) => !cells.some((cell) => cell.includes(`\`${name}\``) || cell.includes(`\`${name}(`)),
  )
}

/** The names of the properties of an interface in the sources. */
function propertiesOf(file: string, name: string): string[] {
  const { members } = declarationIn(file, name, ts.isInterfaceDeclaration)
  return members.map((member) => member.name?.getText() ?? '')
}

/** The names of the public members of a class in the sources, without those that are internal or symbols. */
function membersOf(file: string, name: string): string[] {
  const { members } = declarationIn(file, name, ts.isClassDeclaration)
  const isPublic = (member: ts.ClassElement) =>
    member.name !== undefined &&
    ts.isIdentifier(member.name) &&
    !ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')
  return [...new Set(members.filter(isPublic).map((member) => member.name?.getText() ?? ''))]
}

function declarationIn<Declaration extends ts.InterfaceDeclaration | ts.ClassDeclaration>(
  file: string,
  name: string,
  isKind: (node: ts.Node) => node is Declaration,
): Declaration {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true)
  const declaration = source.statements.filter(isKind).find((each) => each.name?.text === name)
  if (declaration === undefined) throw new Error(`${file} has no ${name}`)
  return declaration
}
