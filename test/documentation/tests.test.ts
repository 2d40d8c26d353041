/** test/README.md names what is there: a stranger finds the tests of each file and what each folder proves. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from './code-blocks.js'

const [folders = '', sources = ''] = readFileSync(join(root, 'test/README.md'), 'utf8').split('Tested under')

/** What stands in a column of a table, each in code quotes. */
const namesIn = (table: string, column: number) =>
  table
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((row) => [...(row.split('|')[column] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))

test('every folder of tests has a row', () => {
  const rows = namesIn(folders, 1).map((name) => name.split('/')[0])
  const inRow = ['messages', 'support']
  const present = readdirSync(join(root, 'test'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
  expect(present.filter((name) => !rows.includes(name) && !inRow.includes(name))).toEqual([])
})

test('every file of src has a test of its name, or its tests are named', () => {
  const elsewhere = namesIn(sources, 1)
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const untold = files
    .filter((file) => /(?<!\.d)\.tsx?$/.test(file))
    .filter((file) => {
      const test = join(root, 'test', file.replace(/\.tsx?$/, ''))
      const hasOwn = existsSync(`${test}.test.ts`) || existsSync(`${test}.property.test.ts`)
      return !hasOwn && !elsewhere.some((name) => file.startsWith(name) || file.endsWith(`/${name}`))
    })
  expect(untold).toEqual([])
})

test('the tests that it names exist', () => {
  const named = namesIn(sources, 2)
  const missing = named.filter(
    (name) => !existsSync(join(root, 'test', name)) && !existsSync(join(root, 'test', `${name}.test.ts`)),
  )
  expect(missing).toEqual([])
})
