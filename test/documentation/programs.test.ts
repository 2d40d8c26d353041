/**
 * The blocks that are programs, to the letter: in a folder that holds nothing else but the package as it was built
 * (`npm run build`), where they compile without any help, and run.
 */
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { environmentOf } from '../support/emulator-environment.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { docstringBlocks, markdownBlocks, pages } from './code-blocks.js'
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
  folder = await ProgramFolder.compile([...programs, ...failingTests])
}, 120_000)
afterAll(() => folder?.[Symbol.asyncDispose]())

const callbackToken = crypto.randomUUID()

describe('the programs of README.md, of docs/ and of docstrings', () => {
  test('are those that are run here', () => {
    expect(programs.map(({ name }) => name)).toEqual([
      'README.md: Create a subscription',
      'README.md: Receive notifications',
      'docs/keeper.md: A program',
      'docs/receiver.md: Payloads of other types',
      'docs/testing.md: Without a network',
      'docs/testing.md: Receiver and client',
      'docs/testing.md: With msw',
      'src/emulator/emulator.ts: startEmulator',
      'src/webhooks/schemas.ts: deliverySchema',
    ])
  })

  test('Create a subscription creates one, with the variables of the environment', async () => {
    await using emulator = await startEmulator()
    await using files = await temporaryFolder()
    const { stdout } = await folder.run('README.md: Create a subscription', {
      ...(await environmentOf(emulator, files.path)),
      CALLBACK_TOKEN: callbackToken,
    })
    expect(stdout).toBe('Subscription 1 is active\n')
    expect(emulator.subscriptions).toEqual([
      expect.objectContaining({
        notificationTypes: ['behavioral', 'call-score'],
        usernames: ['alice', 'bob'],
        callbackUrl: 'https://app.example.com/notifications',
        parameters: { token: callbackToken },
      }),
    ])
  })

  test('Receive notifications handles a callback with the token, and refuses one with another', async () => {
    await using emulator = await startEmulator({ allowInsecureLoopback: true })
    await using client = new NotificationClient(emulator.clientOptions)
    const { program, port } = await folder.startServer('README.md: Receive notifications', {
      CALLBACK_TOKEN: callbackToken,
    })
    await using server = program
    const { subscriptionId } = await client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['carol'],
      callbackUrl: `http://127.0.0.1:${port}/notifications`,
      parameters: { token: callbackToken },
    })
    const notification = { type: 'lowEnergyAgentOpened', username: 'carol' }
    const [accepted] = await emulator.notify(notification)
    await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: 'another' } })
    const [refused] = await emulator.notify(notification)
    expect([accepted?.status, refused?.status]).toEqual([204, 401])
    await server.line(/^carol on call call-1$/)
    expect(server.lines).toHaveLength(2)
  })

  test('Payloads of other types prints a typed payload and the answer', async () => {
    const { stdout } = await folder.run('docs/receiver.md: Payloads of other types')
    expect(stdout).toBe('4.3\n{ status: 204, headers: {} }\n')
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

  test('startEmulator reports the outcome of a callback without a receiver', async () => {
    const { stdout } = await folder.run('src/emulator/emulator.ts: startEmulator')
    expect(stdout).toMatch(/\bError\b|^\d{3}$/m)
  })

  test('the keeper subscribes, and restores what was ended', async () => {
    const { stdout } = await folder.run('docs/keeper.md: A program')
    const printed = markdownBlocks('docs/keeper.md').find(({ language }) => language === 'text')
    expect(stdout).toBe(printed?.code)
  })
})

function failing(name: string): string {
  return `${name}, failing`
}
