import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { end, project, tool } from './support/project.js'
import { run } from './support/run.js'

/** From npm there is a build for one platform only of each; elsewhere the tests run on their own Node.js. */
const runtimes: { name: string; command: string; args?: string[] }[] = [
  { name: 'the Node.js of the tests', command: process.execPath },
  { name: 'Node.js 22', command: tool('node-22/bin/node') },
  { name: 'Node.js 24', command: tool('node-24/bin/node') },
  { name: 'Node.js 26', command: tool('node-26/bin/node') },
  { name: 'Bun', command: tool('@oven/bun-linux-x64/bin/bun'), args: ['--no-install', 'run'] },
  { name: 'Deno', command: tool('@deno/linux-x64-glibc/deno'), args: ['run', '--allow-all', '--no-remote'] },
]

describe.each(runtimes)('$name', ({ command, args = [] }) => {
  const programs = {
    'ES modules': ['program.mjs', 'story.cjs'],
    CommonJS: ['program.cjs', 'story.cjs'],
    'both builds in one process, whose errors know each other': ['both-builds.mjs'],
  }
  const testWhereItRuns = test.skipIf(!existsSync(command)) // npm installs it on its own platform only
  testWhereItRuns.each(Object.entries(programs))('runs %s', async (_, files) => {
    const folder = await project(files)
    // Deno keeps what it compiled, and must not find what another version did.
    const variables = { DENO_DIR: join(inject('workspace'), 'deno') }
    expect(await run(command, [...args, files[0] ?? ''], folder, variables)).toBe(`${end}\n`)
  })
})

test.runIf(existsSync(tool('node-26/bin/node')))('Node.js 26: packages that need 22 or later', async () => {
  const folder = await project(['newest.mjs'])
  expect(await run(tool('node-26/bin/node'), ['newest.mjs'], folder)).toBe(`${end}\n`)
})

const isPlatformOfAll = process.platform === 'linux' && process.arch === 'x64'
// Elsewhere npm leaves some of them out.
test.runIf(isPlatformOfAll)('there is one of each runtime', () => {
  expect(runtimes.filter(({ command }) => !existsSync(command))).toEqual([])
})
