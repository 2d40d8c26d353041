/** README's first program and its commands, as they are printed, in a new project with nothing but the packed package. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pack, run } from '../consumers/support/run.js'
import { markdownBlocks } from '../documentation/code-blocks.js'
import { RunningProgram } from '../support/running-program.js'

const blocks = markdownBlocks('README.md').filter(({ name }) =>
  name.startsWith('README.md: The first notification'),
)
const [install = '', commands = ''] = blocks
  .filter(({ language }) => language === 'sh')
  .map(({ code }) => code)
const program = blocks.find(({ language }) => language === 'ts')?.code ?? ''

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'readme-'))
  await run('npm', ['init', '-y'], folder)
  // What `npm run pack` does after its build.
  await pack(folder)
  await run('sh', ['-c', install], folder)
  await writeFile(join(folder, 'app.mjs'), program)
}, 120_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

test('three commands print a notification', async () => {
  const [emulator = '', app = '', notify = ''] = commands.trim().split('\n')
  const started = (line: string) => new RunningProgram(['-c', line], { folder, command: 'sh' })
  await using service = started(emulator)
  await service.line(/^The emulator is running/)
  await using subscriber = started(app)
  await subscriber.line(/^Subscription 1 is active\.$/)
  await run('sh', ['-c', notify], folder)
  await subscriber.line(/^Notification lowEnergyAgentOpened: \{/)
  expect(subscriber.errors.join('\n')).not.toContain('Error')
})

test('the program has at most 25 lines', () => {
  expect(program.trim().split('\n').length).toBeLessThanOrEqual(25)
})
