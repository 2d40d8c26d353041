/** A keeper whose user of Redis lacks a right. */
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { type KeeperProblem, SubscriptionKeeper } from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'
import { expect, test, vi } from 'vitest'
import { RedisServer } from '../../support/redis-server.js'

/** A keeper on a store of its own connection. */
function keeperOn(emulator: Emulator, redis: Redis, usernames: readonly string[]) {
  const client = new NotificationClient(emulator.clientOptions)
  const problems: KeeperProblem[] = []
  const keeper = new SubscriptionKeeper({
    client,
    name: 'coaching',
    store: redisStore(redis),
    usernames,
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    parameters: { token: 'of the keeper' },
    maxRequestsPerSecond: 1_000,
    onProblem: (problem) => problems.push(problem),
    onGap: () => {},
    logger: false,
  })
  return {
    keeper,
    problems,
    async [Symbol.asyncDispose]() {
      await keeper.stop()
      await client.close()
    },
  }
}

test('without the right to run scripts nothing is sent, and one problem says why until there is the right', async () => {
  await using redis = await RedisServer.start()
  await using emulator = await startEmulator()
  const admin = new Redis(redis.url)
  await admin.call('ACL', 'SETUSER', 'app', 'on', '>password', '~*', '&*', '+@all', '-@scripting')
  const app = new Redis(redis.url, { username: 'app', password: 'password', enableReadyCheck: false })
  try {
    await using kept = keeperOn(emulator, app, ['alice', 'bob'])
    kept.keeper.start()
    await vi.waitFor(() => expect(kept.problems).toHaveLength(1))
    expect(kept.problems[0]).toMatchObject({ code: 'STORE', message: expect.stringContaining('NOPERM') })
    expect(emulator.requests.filter(({ operation }) => operation === 'create')).toEqual([])
    await admin.call('ACL', 'SETUSER', 'app', '+@scripting')
    await vi.waitFor(() => expect(emulator.subscriptions).toHaveLength(2), { timeout: 15_000 })
    expect(kept.problems.map(({ resolved }) => resolved)).toEqual([false, true])
  } finally {
    app.disconnect()
    admin.disconnect()
  }
})
