/** What README.md and its neighbours promise is there: options, errors, files and commands. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as client from 'notification-subscriber'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root } from './code-blocks.js'

const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const readme = textOf('README.md')

describe('the tables of README.md', () => {
  test('name every option of the client', () => {
    const options = propertiesOf('src/client/client-options.ts', 'NotificationClientOptions')
    const retry = propertiesOf('src/http/retry.ts', 'RetryOptions').map((name) => `retry.${name}`)
    const credentials = [
      ...propertiesOf('src/auth/token-request.ts', 'ClientCredentials'),
      ...propertiesOf('src/auth/auth.ts', 'ClientCredentialsAuth'),
    ]
    const expected = [...options.filter((name) => name !== 'retry'), ...retry, ...credentials]
    expect(missingFrom('Client options', expected)).toEqual([])
  })

  test('name every option of the receiver', () => {
    const expected = [
      ...propertiesOf('src/webhooks/receiver/receiver-options.ts', 'ReceiverSettings'),
      ...propertiesOf('src/webhooks/receiver/receiver-options.ts', 'Authenticated'),
    ]
    expect(missingFrom('Receiver options', expected)).toEqual([])
  })

  test('name every error, with its code', () => {
    const errors = Object.entries(client).filter(
      ([name]) => name.endsWith('Error') && name !== 'NotificationError',
    )
    expect(errors).toHaveLength(11)
    const rows = section('Errors').split('\n')
    for (const [name] of errors) {
      const code =
        name === 'ApiError' ? 'API' : name.replace(/Error$/, '').replace(/(?<=[a-z])(?=[A-Z])/g, '_')
      expect(rows).toContainEqual(expect.stringContaining(`| \`${code.toUpperCase()}\` | \`${name}\` |`))
    }
  })
})

describe.each(pages)('%s', (page) => {
  test('links to files that exist', () => {
    const links = [...textOf(page).matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, link = '']) => link)
    expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([])
  })
})

test.each(['README.md', 'SECURITY.md', 'CHANGELOG.md'])('%s names commands that exist', (page) => {
  const scripts = [...textOf(page).matchAll(/\bnpm run ([\w:-]+)/g)].map(([, script = '']) => script)
  expect(scripts.filter((script) => !(script in manifest.scripts))).toEqual([])
  const files = [...textOf(page).matchAll(/\bnpx tsx (\S+\.ts)/g)].map(([, file = '']) => file)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
})

function section(heading: string): string {
  const [, text = ''] = readme.split(new RegExp(`^#+ ${heading}$`, 'm'))
  return text.split(/^#+ /m)[0] ?? ''
}

/** The names that stand in the first cell of no row. */
function missingFrom(heading: string, names: readonly string[]): string[] {
  const cells = section(heading)
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((row) => row.split('|')[1] ?? '')
  return names.filter((name) => !cells.some((cell) => cell.includes(`\`${name}\``)))
}

/** The names of the properties of an interface in the sources. */
function propertiesOf(file: string, name: string): string[] {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true)
  const declaration = source.statements
    .filter(ts.isInterfaceDeclaration)
    .find((each) => each.name.text === name)
  if (declaration === undefined) throw new Error(`${file} has no interface ${name}`)
  return declaration.members.map((member) => member.name?.getText() ?? '')
}
