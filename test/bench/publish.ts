/** Writes what was measured to where readers find it: docs/performance.md. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageFolder } from './prepare.js'
import { asMarkdown, type Row } from './report.js'

const begin = '<!-- measured: from here written by `npm run bench -- --publish` -->'
const end = '<!-- measured: up to here -->'

/** @param command - what measured the rows */
export async function publish(rows: readonly Row[], machine: string, command: string): Promise<void> {
  const { version } = JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8'))
  const date = new Date().toISOString().slice(0, 10)
  const caption = `${date}, version ${version}, ${machine}`
  const page = join(packageFolder, 'docs/performance.md')
  const text = await readFile(page, 'utf8')
  const [before, rest] = text.split(begin)
  const [, after] = rest?.split(end) ?? []
  if (before === undefined || after === undefined) throw new Error(`${page} lacks the marks of the table`)
  await writeFile(
    page,
    `${before}${begin}\n\n${caption}: \`${command}\`\n\n${asMarkdown(rows)}\n\n${end}${after}`,
  )
}
