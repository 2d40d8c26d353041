/** Versions of zod 4 beside ours, under npm and pnpm: their schemas as `payloads`, also with `declaration: true`. */
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, inject, test } from 'vitest'
import { node, tool, writeJson } from './support/project.js'
import { run } from './support/run.js'

const program = fileURLToPath(new URL('programs/zod-beside.ts', import.meta.url))

const managers = {
  npm: (packages: string[]) => ['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages],
  pnpm: (packages: string[]) => [process.execPath, tool('pnpm/bin/pnpm.cjs'), 'add', '--silent', ...packages],
}

describe.each(Object.entries(managers))('a project of %s', (_, install) => {
  test.each(['4.0.17', '4.3.6', '4.5.2', 'latest'])('with zod %s', async (version) => {
    const folder = await mkdtemp(join(inject('workspace'), 'zod-'))
    await writeJson(folder, 'package.json', { private: true, type: 'module' })
    await writeFile(join(folder, '.npmrc'), 'store-dir=../pnpm-store\n')
    const [command = '', ...args] = install([inject('tarball'), `zod@${version}`])
    await run(command, args, folder)
    await cp(program, join(folder, 'program.ts'))
    const compilerOptions = {
      target: 'es2022',
      module: 'nodenext',
      strict: true,
      declaration: true,
      skipLibCheck: true,
      types: ['node'],
      typeRoots: [tool('@types')],
    }
    await writeJson(folder, 'tsconfig.json', { compilerOptions, files: ['program.ts'] })
    await node(folder, tool('typescript/bin/tsc'))
    expect(await readFile(join(folder, 'program.d.ts'), 'utf8')).not.toContain('node_modules')
    expect(await node(folder, 'program.js')).toBe('7 cxScoreUpdated 4\n')
  })
})
