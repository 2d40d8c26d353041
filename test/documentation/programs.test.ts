/**
 * The blocks that are programs, to the letter: in a folder that holds nothing else but the package as it was built
 * (`npm run build`), where they compile without any help, and run.
 */
import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { environmentOf } from '../support/emulator-environment.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { type CodeBlock, docstringBlocks, markdownBlocks, pages } from './code-blocks.js'
import { givenTo } from './modules.js'
import { ProgramFolder } from './programs.js'

const documentedTests = [
  'docs/testing.md: Receiver and client',
  'docs/testing.md: With msw',
  'docs/testing.md: Without a network',
]

/** A block that gets nothing from the context says all that it needs: it is a program. */
const programs = [...pages.flatMap(markdownBlocks), ...docstringBlocks()].filter(
  (block) => block.language === 'ts' && givenTo(block) === undefined,
)

let folder: ProgramFolder
beforeAll(async () => {
  const failingTests = programs
    .filter(({ name }) => documentedTests.includes(name))
    .map((block) => ({
      ...block,
      name: failing(block.name),
      code: block.code
        .replace('assert.equal', 'assert.notEqual')
        .replace('assert.deepEqual', 'assert.notDeepEqual'),
    }))
  folder = await ProgramFolder.compile([...programs, ...failingTests, keptUntilTheEnd()])
}, 120_000)
afterAll(() => folder?.[Symbol.asyncDispose]())

describe('the programs of README.md, of docs/ and of docstrings', () => {
  test('are those that are run here', () => {
    expect(programs.map(({ name }) => name)).toEqual([
      'README.md: The first notification (2)',
      'docs/emulator.md: The emulator',
      'docs/keeper.md: A program',
      // Run by test/integration/restarts.test.ts.
      'docs/keeper.md: In an app',
      'docs/migrate.md: 1. The token',
      'docs/receiver.md: Payloads of other types',
      'docs/testing.md: Without a network',
      'docs/testing.md: Receiver and client',
      'docs/testing.md: With msw',
      'src/emulator/emulator.ts: startEmulator',
      'src/webhooks/schemas.ts: deliverySchema',
    ])
  })

  test('of README.md is run by test/integration/readme.test.ts; the token of docs/migrate.md is one', async () => {
    await using emulator = await startEmulator()
    await using files = await temporaryFolder()
    const { stdout } = await folder.run(
      'docs/migrate.md: 1. The token',
      await environmentOf(emulator, files.path),
    )
    expect(stdout).toMatch(/^Authorization: Bearer eyJ/)
  })

  test('Payloads of other types prints a typed payload and the answer', async () => {
    const { stdout } = await folder.run('docs/receiver.md: Payloads of other types')
    expect(stdout).toBe('4.3\n{ status: 204, headers: {} }\n{ score: 4.25 }\n')
  })

  test.each(documentedTests)('%s passes', async (block) => {
    const { stdout } = await folder.run(block)
    expect(stdout).toMatch(/pass 1\n/)
    expect(stdout).toMatch(/fail 0\n/)
  })

  test.each(documentedTests)('%s ends also when its assertion fails', async (block) => {
    await expect(folder.run(failing(block))).rejects.toMatchObject({
      // Not by the time limit, which ends a program by a signal.
      killed: false,
      code: 1,
      stdout: expect.stringMatching(/fail 1\n/),
    })
  })

  test.each(['docs/emulator.md: The emulator', 'src/emulator/emulator.ts: startEmulator'])(
    '%s reports the outcome of a callback without a receiver',
    async (program) => {
      const { stdout } = await folder.run(program)
      expect(stdout).toMatch(/\bError\b|status: \d{3}|^\d{3}$/m)
    },
  )

  test('the keeper subscribes, and restores what was ended', async () => {
    const { stdout } = await folder.run('docs/keeper.md: A program')
    const printed = markdownBlocks('docs/keeper.md').find(({ language }) => language === 'text')
    expect(stdout).toBe(printed?.code)
  })

  test('the keeper ends everything', async () => {
    const { stdout } = await folder.run('docs/keeper.md: End everything')
    expect(stdout).toMatch(/^3 subscribed\n(?:.*\n)*0 left\n$/)
  })
})

/** The end of everything, as the end of the page's first program. */
function keptUntilTheEnd(): CodeBlock {
  const blocks = markdownBlocks('docs/keeper.md')
  const codeOf = (name: string) =>
    blocks.find((block) => block.name === `docs/keeper.md: ${name}`)?.code ?? ''
  const code = `${codeOf('A program')}${codeOf('End everything')}console.log(emulator.subscriptions.length, 'left')\n`
  return { name: 'docs/keeper.md: End everything', file: 'docs/keeper.md', line: 1, language: 'ts', code }
}

function failing(name: string): string {
  return `${name}, failing`
}
