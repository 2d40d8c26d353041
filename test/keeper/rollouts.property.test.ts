/** A week of rollouts (`npm test`: a fifth of it): deployments and canaries, with store and service away at any moment. */
import { expect, test } from 'vitest'
import { Random } from '../support/random.js'
import { tries } from '../support/random-runs.js'
import { events } from './convergence/events.js'
import { wrongAtTheService, wrongInTheKeeper } from './convergence/final-rules.js'
import { hour, minute } from './convergence/world.js'
import { agents, settledWorld, tellStories } from './stories.js'

tellStories()

test('in a week of rollouts every user has one subscription with the newest configuration soon after each', {
  timeout: 600_000,
}, async () => {
  const random = Random.seeded()
  const world = await settledWorld({
    users: 12,
    processes: 3,
    hasCompareAndSet: true,
    seed: Math.floor(random.upTo(2 ** 31)),
  })
  const upTo = (ms: number) => Math.floor(random.upTo(ms))
  const rollouts = {
    /** New values. Old processes stop within five minutes, one by one. */
    rotate: () => events.rotate.happen(world, {}),
    canary: () =>
      events.canary.happen(world, {
        isOld: random.chance(0.3),
        isKilled: random.chance(0.5),
        forMs: upTo(20 * minute),
      }),
  }
  const disturbances = {
    none: () => {},
    storeAway: () =>
      events.storeFails.happen(world, {
        mode: random.chance(0.5) ? 'failing' : 'hanging',
        forMs: upTo(10 * minute),
      }),
    serviceAway: () =>
      events.outage.happen(world, { outage: { kind: 'unreachable' }, forMs: upTo(10 * minute) }),
    ends: () => world.end(agents(12).filter(() => random.chance(0.5))),
  }
  for (let rollout = 1; world.time.nowMs < tries(7) * 24 * hour; rollout++) {
    const first = random.oneOf(['rotate', 'canary'] as const)
    const then = random.oneOf(['none', 'storeAway', 'serviceAway', 'ends'] as const)
    rollouts[first]()
    await world.time.advance(upTo(5 * minute))
    disturbances[then]()
    // The longest canary or outage, and two intervals.
    await world.time.advance(55 * minute)
    const wrong = [
      ...wrongAtTheService(world),
      ...world.nodes.flatMap((node) => wrongInTheKeeper(world, node)),
    ]
    expect(wrong, `${rollout}: ${first} and ${then}`).toEqual([])
    expect(world.nodes).toHaveLength(3)
  }
})
