/**
 * Keepers on a real Redis, in processes of their own whose clocks run faster than ours: see `programs/fast-clock.ts`. What
 * happens to the processes stands in `disturbances.ts`, and what must be true in the end in `keeper-scene.ts`. What no
 * request may ever be is tested in virtual time, by `test/keeper/random-sequences`.
 */
import { expect, test } from 'vitest'
import { Random } from '../../support/random.js'
import { RedisServer } from '../../support/redis-server.js'
import { type Disturbance, Disturbances, plan } from './disturbances.js'
import { Scene } from './keeper-scene.js'

/** Two processes, or as many as the nightly run asks for. */
const processCounts = [Number(process.env.KEEPERS ?? 2)]

test.each(processCounts)(
  '%i keepers, killed again and again: one subscription for each user, and every gap is known',
  async (processes) => {
    const random = Random.seeded()
    await using redis = await RedisServer.start()
    await using scene = await Scene.start({ redis, random, processes })
    const { emulator, keepers } = scene
    const disturbances = new Disturbances(scene, random)

    const deck = Object.entries(plan).flatMap(([each, times]) => new Array(times).fill(each as Disturbance))
    for (const disturbance of random.shuffled<Disturbance>(deck)) {
      await scene.change()
      await disturbances[disturbance]()
    }
    // From here on no process dies, so that no process repairs what another has missed.
    await disturbances.superseded()
    emulator.clearFaults()
    await scene.changeRoster()
    scene.endAfterProof('create', 2)
    scene.endAfterProof('update', 1)
    expect(keepers.kills).toBeGreaterThanOrEqual(50)
    await scene.expectSettled(redis.url)
    console.log(
      `${keepers.kills} killed, ${keepers.lives.length} processes, ${scene.history.lifetimes.length} subscriptions`,
    )
    expect(scene.history.lifetimes.length).toBeGreaterThan(30)
    await scene.expectGapsReported()
    scene.expectOthersUntouched()
    await scene.expectNoSecret()
    await scene.expectNoUnfoundedProblem()
  },
)
