import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { verdicts } from './verdicts.js'

test('where code generation is forbidden the results are the same', async () => {
  const script = fileURLToPath(new URL('verdicts.ts', import.meta.url))
  const flags = ['--disallow-code-generation-from-strings', '--import', 'tsx']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, script, 'print'])
  const { forbidden, results } = JSON.parse(stdout)
  expect(forbidden).toBe(true)
  expect(results).toEqual(JSON.parse(JSON.stringify(verdicts())))
})
