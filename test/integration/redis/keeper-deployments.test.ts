/** What happens to keepers in ordinary deployments on a real Redis: a canary, and rights. */
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { type KeeperProblem, SubscriptionKeeper } from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'
import { expect, test, vi } from 'vitest'
import { Random } from '../../support/random.js'
import { RedisServer } from '../../support/redis-server.js'
import { Scene } from './keeper-scene.js'

test('a canary that is withdrawn, and three processes that are each killed once', async () => {
  const random = Random.seeded()
  await using redis = await RedisServer.start()
  await using scene = await Scene.start({ redis, random, processes: 3 })
  await scene.expectSettled(redis.url)
  const { emulator, keepers } = scene
  const hasOnly = (configuration: number) => {
    const own = emulator.subscriptions.filter(({ parameters }) => parameters.token?.startsWith('sesame-'))
    expect(own).toHaveLength(scene.roster.names.size)
    for (const { parameters } of own) expect(parameters.token).toBe(keepers.tokenOf(configuration))
  }
  keepers.configuration = 2
  await keepers.restart(0)
  // How soon, is tested in virtual time.
  const patience = { timeout: 60_000, interval: 100 }
  await vi.waitFor(() => hasOnly(2), patience)
  // Withdrawn, while a subscription ends.
  keepers.configuration = 1
  keepers.kill(0)
  scene.endSome(5)
  await vi.waitFor(() => hasOnly(1), patience)
  for (const index of [0, 1, 2]) await keepers.restart(index)
  scene.endSome(3)
  await scene.expectSettled(redis.url)
  hasOnly(1)
})

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
