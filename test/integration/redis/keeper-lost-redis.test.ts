/** Keepers in processes of their own, as in `keeper-killed.test.ts`, whose Redis fails, or loses what it held. */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Emulator } from 'notification-subscriber/emulator'
import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { Random } from '../../support/random.js'
import { RedisServer } from '../../support/redis-server.js'
import { fastMs } from './fast-time.js'
import { Scene } from './keeper-scene.js'
import { Relay } from './relay.js'

/** Most of what a process does, it has done once in this time. */
const intervalMs = fastMs(60_000)

test.concurrent('a Redis that is killed, stands still, is emptied, or comes back from an old dump: everything is repaired', async () => {
  const random = Random.seeded()
  await using redis = await RedisServer.start({ appendOnly: true })
  await using scene = await Scene.start({ redis, random, processes: 2 })
  await scene.expectSettled(redis.url)
  const dump = await dumped(redis.url)
  scene.endSome(4)
  await scene.changeRoster()
  await scene.expectSettled(redis.url)

  const faults = {
    killed: async () => {
      await redis.kill()
      scene.endSome(3)
      await pause(2 * intervalMs)
      await redis.restart()
    },
    'stands still': async () => {
      redis.stop()
      scene.endSome(3)
      await pause(2 * intervalMs)
      redis.resume()
    },
    emptied: async () => {
      await command(redis.url, (client) => client.flushall())
      scene.endSome(3)
    },
    'back from an old dump': () => restored(redis.url, dump),
    'away for one process': async () => {
      const link = scene.keepers.cutOff(0, 'cut')
      scene.endSome(3)
      await pause(2 * intervalMs)
      link.mend()
    },
  }
  for (const [fault, strike] of Object.entries(faults)) {
    const created = scene.history.lifetimes.length
    await strike()
    await scene.expectSettled(redis.url)
    // Users keep their subscriptions; an old dump has ids that ended since, and each such user is subscribed once more.
    const made = scene.history.lifetimes.length - created
    const most = fault === 'back from an old dump' ? 15 : 4
    expect(made, `subscriptions made with a Redis that is ${fault}`).toBeLessThanOrEqual(most)
  }
  await scene.expectGapsReported()
  scene.expectOthersUntouched()
})

test.concurrent.each(['sweep', 'rotation'] as const)(
  'a primary that dies in the middle of a %s, and a replica without its last writes: one subscription for each user',
  async (work) => {
    const random = Random.seeded()
    await using primary = await RedisServer.start()
    await using link = await Relay.start({ port: primary.port })
    await using replica = await RedisServer.start({ replicaOf: link.port })
    await using scene = await Scene.start({ redis: primary, random, processes: 2 })
    const { keepers, emulator } = scene
    await scene.expectSettled(primary.url)
    await eventually(async () => expect(await storedCount(replica.url)).toBe(await storedCount(primary.url)))

    scene.endSome(6)
    // From now on nothing that is written reaches the replica.
    link.holdAnswers()
    if (work === 'rotation') keepers.configuration++
    const answers = [0, 1].map((index) =>
      keepers.ask(index, work === 'sweep' ? 'sweep' : { rotateTo: keepers.configuration }),
    )
    await nextRequest(emulator)
    await pause(random.upTo(300))
    await primary.kill()
    link.cut()
    await pause(random.upTo(500))
    await command(replica.url, (client) => client.replicaof('NO', 'ONE'))
    keepers.pointTo(replica.port)
    await Promise.all(answers)

    await scene.expectSettled(replica.url)
    await scene.expectGapsReported()
    scene.expectOthersUntouched()
    await scene.expectNoSecret()
  },
)

function nextRequest(emulator: Emulator): Promise<void> {
  return new Promise((resolve) => {
    const stop = emulator.on('request', () => {
      stop()
      resolve()
    })
  })
}

async function command<Result>(url: string, run: (client: Redis) => Promise<Result>): Promise<Result> {
  const client = new Redis(url)
  try {
    return await run(client)
  } finally {
    client.disconnect()
  }
}

/** As of a dump that is older than a day: what was replaced then may be replaced again. */
function dumped(url: string): Promise<Map<string, string>> {
  return command(url, async (client) => {
    const keys = await client.keys('*')
    const texts = await client.mget(keys)
    const old = texts.map((text) => text?.replace(/,"replacedAt":\d+/, '') ?? '')
    return new Map(keys.map((key, index) => [key, old[index] ?? '']))
  })
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
