/**
 * Keepers on a real Redis, in processes of their own whose clocks run faster than ours: see `programs/fast-clock.ts`. What
 * else may happen to keepers, and what no request may ever be, is tested in virtual time: `test/keeper/random-sequences`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { RedisServer } from '../../support/redis-server.js'
import { fastMs } from './fast-time.js'
import { Keepers } from './keepers.js'

/** A claim is taken over after that. */
const claimStaleMs = fastMs(120_000)

/** Two processes, or as many as the nightly run asks for. */
const processCounts = [Number(process.env.KEEPERS ?? 2)]

test.each(processCounts)(
  '%i keepers, killed again and again: one subscription for each user, and every gap is known',
  async (count) => {
    await using redis = await RedisServer.start()
    await using keepers = await Keepers.start(redis.port, count)
    const { emulator, random } = keepers
    const anyPlace = () => Math.floor(random.upTo(count))

    /** At any moment, or just when a subscription begins or ends, before the keeper can know. */
    const atMoment = async (happen: () => void) => {
      const event = random.oneOf(['created', 'ended', 'request', undefined] as const)
      let hasHappened = false
      const once = () => {
        if (!hasHappened) happen()
        hasHappened = true
      }
      const unlisten = event === undefined ? () => {} : emulator.on(event, once)
      await pause(random.upTo(400))
      unlisten()
      once()
    }
    const disturbances = {
      killed: async () => {
        const index = anyPlace()
        await atMoment(() => keepers.kill(index))
        await keepers.restart(index)
      },
      allKilled: async () => {
        await atMoment(() => keepers.places.forEach((index) => void keepers.kill(index)))
        for (const index of keepers.places) await keepers.restart(index)
      },
      /** For longer than two minutes; then it goes on with all that it was about to do. */
      stopped: async () => {
        const { resume } = keepers.stop(anyPlace())
        await pause(claimStaleMs * (1 + random.upTo(0.5)))
        resume()
      },
      cutOff: async () => {
        const link = keepers.cutOff(anyPlace(), random.oneOf(['cut', 'hold']))
        await pause(random.upTo(claimStaleMs))
        link.mend()
      },
    }
    const { killed, allKilled, stopped, cutOff } = disturbances
    const plan = [
      ...Array(40).fill(killed),
      ...Array(5).fill(allKilled),
      ...[stopped, stopped, cutOff, cutOff],
    ]
    for (const happen of random.shuffled<() => Promise<void>>(plan)) {
      keepers.endSome(1)
      emulator.clearFaults()
      // Creates take a while, so that kills fall between a request and its answer; some answers are lost.
      emulator.injectFault('create', { delayMs: 150 }, { times: 3 })
      if (random.chance(0.4)) emulator.injectFault('create', { reset: 'after-processing' })
      if (random.chance(0.2)) emulator.injectFault('update', { reset: 'after-processing' })
      await happen()
    }
    emulator.clearFaults()
    expect(keepers.kills).toBeGreaterThanOrEqual(45)
    await keepers.expectSettled(redis.url)
    expect(keepers.lifetimes.length).toBeGreaterThan(20)
    await keepers.expectGapsReported()
    await keepers.expectNoSecret(redis.url)
  },
)
