/** The scripts that people copy compile in projects that are stricter than this one. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { strictest } from '../support/strictest.js'
import { root } from './code-blocks.js'

const files = readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.mts'))
  .map((path) => join(root, 'examples', path))

test('every example compiles under the strictest settings', () => {
  const configFile = join(root, 'tsconfig.json')
  const { config } = ts.readConfigFile(configFile, ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root, undefined, configFile)
  // One program for all: most of the time goes into the declarations that they share.
  const program = ts.createProgram(files, { ...options, ...strictest, noUnusedLocals: true })
  const problems = ts
    .getPreEmitDiagnostics(program)
    .filter(({ file }) => file === undefined || file.fileName.startsWith(join(root, 'examples')))
    .map(
      ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
    )
  expect(files.length).toBeGreaterThan(10)
  expect(problems).toEqual([])
})
