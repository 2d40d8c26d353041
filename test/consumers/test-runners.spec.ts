import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { end, node, project, tool, writeJson } from './support/project.js'

test('Jest runs the emulator, with no configuration but its own', async () => {
  const folder = await project(['story.test.cjs', 'story.cjs'])
  await writeJson(folder, 'package.json', { type: 'commonjs' })
  await rename(join(folder, 'story.test.cjs'), join(folder, 'story.test.js'))
  const printed = await node(folder, tool('jest/bin/jest.js'), '--ci')
  expect(printed).toContain(end)
  expect(printed).toContain('1 passed, 1 total')
})

test('Vitest runs the emulator, with no configuration but its own', async () => {
  const folder = await project(['story.test.mjs', 'story.cjs'])
  await writeJson(folder, 'package.json', { type: 'module' })
  const printed = await node(folder, tool('vitest/vitest.mjs'), 'run', '--no-color')
  expect(printed).toContain(end)
  expect(printed).toMatch(/Tests\s+1 passed \(1\)/)
})

test('Jest in its ESM mode runs the emulator on msw', async () => {
  const folder = await project(['msw.test.mjs'], inject('withMsw'))
  await writeJson(folder, 'package.json', { type: 'module' })
  await writeJson(folder, 'jest.config.json', { testMatch: ['**/*.test.mjs'], transform: {} })
  const printed = await node(folder, '--experimental-vm-modules', tool('jest/bin/jest.js'), '--ci')
  expect(printed).toContain('1 passed, 1 total')
})
