import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { end, node, project, tool } from './support/project.js'

/** The command of each writes one self-contained program for Node.js; its entry goes by each build of the package. */
const bundlers = [
  {
    name: 'esbuild',
    files: [],
    command: (entry: string, out: string) => [
      tool('esbuild/bin/esbuild'),
      entry,
      '--bundle',
      '--platform=node',
      '--log-level=warning',
      `--outfile=${join(out, 'program.cjs')}`,
    ],
  },
  {
    name: 'Rollup',
    files: ['rollup.config.mjs'],
    command: (entry: string, out: string) => [
      tool('rollup/dist/bin/rollup'),
      '--config',
      '--silent',
      '--input',
      entry,
      '--file',
      join(out, 'program.mjs'),
    ],
  },
  {
    name: 'Vite',
    files: ['vite.config.mjs'],
    command: (entry: string, out: string) => [
      tool('vite/bin/vite.js'),
      'build',
      '--logLevel',
      'warn',
      '--ssr',
      entry,
      '--emptyOutDir',
      '--outDir',
      out,
    ],
  },
  {
    name: 'webpack',
    files: ['build-with-webpack.cjs'],
    command: (entry: string, out: string) => ['build-with-webpack.cjs', entry, join(out, 'program.cjs')],
  },
]

describe.each(bundlers)('$name', ({ files, command }) => {
  let elsewhere: string
  beforeAll(async () => {
    // Nothing can be found there but what is in the bundle.
    elsewhere = await mkdtemp(join(tmpdir(), 'notification-subscriber-bundle-'))
  })
  afterAll(() => rm(elsewhere, { recursive: true }))

  test.each(['program.mjs', 'program.cjs'])('bundles %s without a warning, and it runs', async (entry) => {
    const folder = await project([entry, 'story.cjs', ...files])
    const out = await mkdtemp(join(elsewhere, 'bundle-'))
    const printed = await node(folder, ...command(entry, out))
    expect(printed).toBe('')
    const [program = ''] = (await readdir(out)).filter((file) => file.startsWith('program.'))
    expect(await node(out, program)).toBe(`${end}\n`)
  })
})
