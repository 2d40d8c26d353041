/** Keepers in processes of their own, as in `keeper-killed.test.ts`, whose Redis fails, or loses what it held. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { RedisServer } from '../../support/redis-server.js'
import { command, intervalMs, Keepers, storedIn } from './keepers.js'
import { Relay } from './relay.js'

test.concurrent('a Redis that is killed, stands still, is emptied, or comes back from an old dump: everything is repaired', async () => {
  await using redis = await RedisServer.start({ appendOnly: true })
  await using keepers = await Keepers.start(redis.port, 2)
  await keepers.expectSettled(redis.url)
  const dump = await dumped(redis.url)
  keepers.endSome(4)
  await keepers.expectSettled(redis.url)

  const faults = {
    killed: async () => {
      await redis.kill()
      keepers.endSome(3)
      await pause(2 * intervalMs)
      await redis.restart()
    },
    'stands still': async () => {
      redis.stop()
      keepers.endSome(3)
      await pause(2 * intervalMs)
      redis.resume()
    },
    emptied: async () => {
      await command(redis.url, (client) => client.flushall())
      keepers.endSome(3)
    },
    'back from an old dump': () => restored(redis.url, dump),
    'away for one process': async () => {
      const link = keepers.cutOff(0, 'cut')
      keepers.endSome(3)
      await pause(2 * intervalMs)
      link.mend()
    },
  }
  for (const [fault, strike] of Object.entries(faults)) {
    const before = keepers.lifetimes.length
    await strike()
    await keepers.expectSettled(redis.url)
    // Three ended, and a create may have been on its way. An old dump has ids that ended since: each such user is subscribed anew.
    const made = keepers.lifetimes.length - before
    const most = fault === 'back from an old dump' ? 15 : 4
    expect(made, `subscriptions made with a Redis that is ${fault}`).toBeLessThanOrEqual(most)
  }
  await keepers.expectGapsReported()
})

test.concurrent('a primary that dies in the middle of a sweep, and a replica without its last writes: one subscription for each user', async () => {
  await using primary = await RedisServer.start()
  await using link = await Relay.start({ port: primary.port })
  await using replica = await RedisServer.start({ replicaOf: link.port })
  await using keepers = await Keepers.start(primary.port, 2)
  const { emulator, random } = keepers
  await keepers.expectSettled(primary.url)
  await eventually(async () => expect(await storedCount(replica.url)).toBe(await storedCount(primary.url)))

  keepers.endSome(6)
  // From now on nothing that is written reaches the replica.
  link.holdAnswers()
  const sweeps = keepers.places.map((index) => keepers.ask(index, 'sweep'))
  await new Promise<void>((resolve) => emulator.on('request', () => resolve()))
  await pause(random.upTo(300))
  await primary.kill()
  link.cut()
  await pause(random.upTo(500))
  await command(replica.url, (client) => client.replicaof('NO', 'ONE'))
  keepers.pointTo(replica.port)
  await Promise.all(sweeps)

  await keepers.expectSettled(replica.url)
  await keepers.expectGapsReported()
})

/** As of a dump that is older than a day: what was replaced then may be replaced again. */
async function dumped(url: string): Promise<Map<string, string>> {
  const stored = await storedIn(url)
  return new Map([...stored].map(([key, text]) => [key, text.replace(/,"replacedAt":\d+/, '')]))
}

function restored(url: string, dump: ReadonlyMap<string, string>): Promise<unknown> {
  return command(url, async (client) => {
    await client.flushall()
    await client.mset(dump)
  })
}

function storedCount(url: string): Promise<number> {
  return command(url, (client) => client.dbsize())
}
