/** The commands of docs/migrate.md, as a user of an integration of their own runs them, before the keeper starts. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { expect, test } from 'vitest'
import { environmentWith } from '../consumers/support/run.js'
import { environmentOf } from '../support/emulator-environment.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { markdownBlocks, root } from './code-blocks.js'

const callbackUrl = 'https://app.example.com/notifications'
const commands = markdownBlocks('docs/migrate.md')
  .filter(({ language, name }) => language === 'sh' && name.includes('free the old subscription'))
  .map(({ code }) => code.trim())

test('the old subscription is found and ended, and the keeper subscribes each of its users', async () => {
  await using emulator = await startEmulator()
  await using files = await temporaryFolder()
  const variables = await environmentOf(emulator, files.path)
  const runCommand = async (line: string) => {
    const [, , , ...args] = line.replace('--dotenv .env ', '').split(/[\s\\]+/)
    const env = environmentWith({ ...variables, CALLBACK_TOKEN: 'token-of-the-migration' })
    const cli = join(root, 'dist/cli/index.js')
    return (await promisify(execFile)(process.execPath, [cli, ...args], { env })).stdout
  }

  await using client = new NotificationClient(emulator.clientOptions)
  await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['alice', 'bob'],
    callbackUrl,
    parameters: { token: 'token-of-the-migration' },
  })
  const keeper = new SubscriptionKeeper({
    client,
    name: 'coaching',
    store: new Map(),
    usernames: ['alice', 'bob'],
    notificationTypes: ['behavioral'],
    callbackUrl,
    parameters: { token: 'token-of-the-migration' },
    logger: false,
  })
  expect((await keeper.sweep()).failed).toHaveLength(2)
  expect(keeper.status().problems.map(({ code }) => code)).toContain('CONFLICT')

  const [find = '', end = ''] = commands
  const [id = ''] = /(?<=Subscription )\d+/.exec(await runCommand(find)) ?? []
  await runCommand(end.replace('42', id))
  expect(emulator.subscriptions).toEqual([])
  expect(await keeper.sweep()).toMatchObject({ active: 2, failed: [] })
  await keeper.stop()
})
