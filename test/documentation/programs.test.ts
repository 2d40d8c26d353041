/**
 * The blocks that are programs, to the letter: in a folder that holds nothing else but the package as it was built
 * (`npm run build`), where they compile without any help, and run.
 */
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConnectProxy } from '../support/connect-proxy.js'
import { docstringBlocks, markdownBlocks } from './code-blocks.js'
import { context } from './context.js'
import { ProgramFolder } from './programs.js'

/** A block that gets nothing from the context says all that it needs: it is a program. */
const programs = [...markdownBlocks('README.md'), ...docstringBlocks()].filter(
  ({ language, name }) => language === 'ts' && context[name] === undefined,
)

let folder: ProgramFolder
beforeAll(async () => {
  folder = await ProgramFolder.compile(programs)
}, 120_000)
afterAll(() => folder?.[Symbol.asyncDispose]())

describe('the programs of README.md and of docstrings', () => {
  test('are those that are run here', () => {
    expect(programs.map(({ name }) => name)).toEqual([
      'README.md: Subscribe',
      'README.md: Receive',
      'README.md: Types and payloads',
      'README.md: Test your app',
      'README.md: Test your app (2)',
      'src/emulator/emulator.ts: startEmulator',
    ])
  })

  test('Subscribe creates the subscription, at addresses that only a proxy knows', async () => {
    const credentials = { domain: 'acme', clientId: 'an-id', clientSecret: 'a-secret' }
    await using emulator = await startEmulator(credentials)
    await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
    const { stdout } = await folder.run('README.md: Subscribe', {
      NOTIFICATION_CLIENT_ID: credentials.clientId,
      NOTIFICATION_CLIENT_SECRET: credentials.clientSecret,
      CALLBACK_TOKEN: 'callback-token',
      // In either case, because the environment of whoever runs the tests may have the other.
      HTTPS_PROXY: proxy.url,
      https_proxy: proxy.url,
      NO_PROXY: '',
      no_proxy: '',
      // The emulator's certificate is for loopback, and not for the hosts in the block.
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    })
    expect(stdout).toBe('Subscription 1 is active\n')
    expect(new Set(proxy.requests.map(({ target }) => target))).toEqual(
      new Set(['auth.acme.example.com:443', 'notifications.example.com:443']),
    )
    expect(emulator.subscriptions).toEqual([
      expect.objectContaining({
        notificationTypes: ['behavioral', 'call-score'],
        usernames: ['alice', 'bob'],
        callbackUrl: 'https://app.example.com/notifications',
        parameters: { token: 'callback-token' },
      }),
    ])
  })

  test('Receive handles a callback with the token, and refuses one with another', async () => {
    await using emulator = await startEmulator({ allowInsecureLoopback: true })
    await using client = new NotificationClient({ ...emulator.clientOptions, allowInsecureLoopback: true })
    await using server = await folder.startServer('README.md: Receive', { CALLBACK_TOKEN: 'callback-token' })
    const { subscriptionId } = await client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['alice'],
      callbackUrl: `http://127.0.0.1:${server.port}/notifications`,
      parameters: { token: 'callback-token' },
    })
    const notification = {
      type: 'lowEnergyAgentOpened',
      category: 'behavioral',
      username: 'alice',
      payload: { callId: 'call-1', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
    } as const
    const [accepted] = await emulator.notify(notification)
    await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: 'another' } })
    const [refused] = await emulator.notify(notification)
    expect([accepted?.status, refused?.status]).toEqual([204, 401])
    expect(await server.stop()).toBe('alice on call call-1\n')
  })

  test('Types and payloads prints a typed payload, and what was answered', async () => {
    const { stdout } = await folder.run('README.md: Types and payloads')
    expect(stdout).toBe('4.3\n{ status: 204, headers: {} }\n')
  })

  test.each(['README.md: Test your app', 'README.md: Test your app (2)'])('%s passes', async (block) => {
    const { stdout } = await folder.run(block)
    expect(stdout).toMatch(/pass 1\n/)
    expect(stdout).toMatch(/fail 0\n/)
  })

  test('startEmulator tells what became of a callback that nobody receives', async () => {
    const { stdout } = await folder.run('src/emulator/emulator.ts: startEmulator')
    expect(stdout).toMatch(/\bError\b|^\d{3}$/m)
  })
})
