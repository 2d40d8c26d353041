/**
 * The blocks that are programs, to the letter: in a folder that holds nothing else but the package as it was built
 * (`npm run build`), where they compile without any help, and run.
 */
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.js'
import { docstringBlocks, markdownBlocks, pages } from './code-blocks.js'
import { givenTo } from './modules.js'
import { ProgramFolder } from './programs.js'

const documentedTests = [
  'README.md: Test your app',
  'docs/emulator.md: A test that receives',
  'docs/emulator.md: With msw',
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

describe('the programs of README.md, of docs/ and of docstrings', () => {
  test('are those that are run here', () => {
    expect(programs.map(({ name }) => name)).toEqual([
      'README.md: Subscribe and receive',
      'README.md: Test your app',
      'docs/emulator.md: A test that receives',
      'docs/emulator.md: With msw',
      'docs/keeper.md: A program',
      'docs/receiver.md: Types and payloads',
      'src/emulator/start-emulator.ts: startEmulator',
    ])
  })

  test('Subscribe and receive subscribes, handles a callback with the token, and refuses one with another', async () => {
    await using emulator = await startEmulator({ allowInsecureLoopback: true })
    await using client = new NotificationClient({ ...emulator.clientOptions, allowInsecureLoopback: true })
    await using server = await folder.startServer('README.md: Subscribe and receive', {
      NOTIFICATION_BASE_URL: emulator.baseUrl,
      NOTIFICATION_AUTH_URL: emulator.authUrl,
      NOTIFICATION_DOMAIN: emulator.domain,
      NOTIFICATION_CLIENT_ID: emulator.clientId,
      NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
      CALLBACK_TOKEN: 'callback-token',
      NO_PROXY: '127.0.0.1',
      no_proxy: '127.0.0.1',
      // The emulator's authority is not among those that Node.js trusts.
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    })
    await eventually(() =>
      expect(emulator.subscriptions).toEqual([
        expect.objectContaining({
          notificationTypes: ['behavioral', 'call-score'],
          usernames: ['alice', 'bob'],
          callbackUrl: 'https://app.example.com/notifications',
          parameters: { token: 'callback-token' },
        }),
      ]),
    )
    // Where the app's own address would lead.
    const { subscriptionId } = await client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['carol'],
      callbackUrl: `http://127.0.0.1:${server.port}/notifications`,
      parameters: { token: 'callback-token' },
    })
    const notification = {
      type: 'lowEnergyAgentOpened',
      category: 'behavioral',
      username: 'carol',
      payload: { callId: 'call-1', username: 'carol', bTime: 21648, nTime: 35912, idx: 0 },
    } as const
    const [accepted] = await emulator.notify(notification)
    await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: 'another' } })
    const [refused] = await emulator.notify(notification)
    expect([accepted?.status, refused?.status]).toEqual([204, 401])
    expect(await server.stop()).toBe('Subscription 1 is active\ncarol on call call-1\n')
  })

  test('Types and payloads prints a typed payload, and what was answered', async () => {
    const { stdout } = await folder.run('docs/receiver.md: Types and payloads')
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

  test('startEmulator tells what became of a callback that nobody receives', async () => {
    const { stdout } = await folder.run('src/emulator/start-emulator.ts: startEmulator')
    expect(stdout).toMatch(/\bError\b|^\d{3}$/m)
  })

  test('the keeper subscribes, and restores what was ended', async () => {
    const { stdout } = await folder.run('docs/keeper.md: A program')
    const printed = markdownBlocks('docs/keeper.md').find(({ language }) => language === 'text')
    expect(stdout).toBe(printed?.code)
  })
})

/** The name of the block whose assertion is turned into its opposite. */
function failing(name: string): string {
  return `${name}, failing`
}
