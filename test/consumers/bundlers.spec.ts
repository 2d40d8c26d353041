import { readdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { end, node, project, tool } from './support/project.js'

/** The command of each writes one self-contained program for Node.js; its entry goes by each build of the package. */
const bundlers = [
  {
    name: 'esbuild',
    files: [],
    command:
      'TOOLS/esbuild/bin/esbuild ENTRY --bundle --platform=node --log-level=warning --outfile=OUT/program.cjs',
  },
  {
    name: 'Rollup',
    files: ['rollup.config.mjs'],
    command: 'TOOLS/rollup/dist/bin/rollup --config --silent --input ENTRY --file OUT/program.mjs',
  },
  {
    name: 'Vite',
    files: ['vite.config.mjs'],
    command: 'TOOLS/vite/bin/vite.js build --logLevel warn --ssr ENTRY --emptyOutDir --outDir OUT',
  },
  {
    name: 'webpack',
    files: ['build-with-webpack.cjs'],
    command: 'build-with-webpack.cjs ENTRY OUT/program.cjs',
  },
]

describe.each(bundlers)('$name', ({ files, command }) => {
  test.each(['program.mjs', 'program.cjs'])('bundles %s without a warning, and it runs', async (entry) => {
    const folder = await project([entry, 'story.cjs', ...files])
    // Nothing can be found there but what is in the bundle.
    await using elsewhere = await temporaryFolder()
    const places: Record<string, string> = { TOOLS: tool(''), ENTRY: entry, OUT: elsewhere.path }
    const args = command.split(' ').map((arg) => arg.replace(/[A-Z]{3,}/, (place) => places[place] ?? ''))
    expect(await node(folder, ...args)).toBe('')
    const [program = ''] = (await readdir(elsewhere.path)).filter((file) => file.startsWith('program.'))
    expect(await node(elsewhere.path, program)).toBe(`${end}\n`)
  })
})
