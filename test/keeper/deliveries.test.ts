/** Deliveries as proofs, and deliveries of subscriptions that the keeper does not know: on the model of the service. */
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/rules/final-state.js'
import { gapsNotReported } from './model/rules/gaps.js'
import {
  agents,
  codes,
  hour,
  minute,
  nodeOf,
  second,
  settledWorld,
  useVirtualProcesses,
} from './model/setup.js'
import { defaultConfiguration, World } from './model/world.js'

useVirtualProcesses()

describe('a delivery of a subscription', () => {
  test('that the keeper has just ended is not reported', async () => {
    const world = await settledWorld({ users: 3 })
    const [ended] = world.service.activeFor('agent1')
    world.wantNoLonger('agent1')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(world.service.activeFor('agent1')).toEqual([])
    world.observe(ended?.id ?? 0, 0)
    await world.time.advance(5 * minute)
    expect(codes(world)).toEqual([])
  })

  test.each([0, 7, 14, 21, 28])(
    'that nobody knows is reported after a minute, and not before, also if the first came %i s after a review',
    async (seconds) => {
      const world = await settledWorld({ users: 1 })
      await world.time.advance(seconds * second)
      world.observe(999, 0)
      await world.time.advance(minute - second)
      expect(codes(world)).toEqual([])
      await world.time.advance(32 * second)
      expect(codes(world)).toEqual(['STRAY'])
    },
  )

  test('that nobody knows is a problem until none has come for an hour', async () => {
    const world = await settledWorld({ users: 1 })
    for (let count = 0; count < 4; count++) {
      world.observe(999, 0)
      await world.time.advance(30 * minute)
    }
    expect(codes(world)).toEqual(['STRAY'])
    await world.time.advance(29 * minute)
    expect(codes(world)).toEqual(['STRAY'])
    await world.time.advance(3 * minute)
    expect(codes(world)).toEqual(['STRAY', 'STRAY resolved'])
  })

  test('of subscription 0, which `notification-subscriber check` posts, and of what is no id is not reported', async () => {
    const world = await settledWorld({ users: 1 })
    world.observe(0, 0)
    const made: unknown[] = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '7', Symbol('id'), undefined]
    for (const id of made) world.observe(id as number, 0)
    await world.time.advance(5 * minute)
    expect(codes(world)).toEqual([])
  })

  test('that nobody knows is one of a thousand at most: who sends more makes them up', async () => {
    const world = await settledWorld({ users: 1 })
    for (let id = 5_000; id < 7_000; id++) world.observe(id, 0)
    await world.time.advance(3 * minute)
    expect(world.problems).toHaveLength(1_000)
    await world.time.advance(hour)
    expect(nodeOf(world).process.run(() => nodeOf(world).keeper.status()).problems).toEqual([])
  })

  test('of a user who was restored lets the receiver be believed again a minute after the last end was found', async () => {
    const world = await settledWorld({ users: 3 })
    world.end(agents(3))
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toContain('RECEIVER_SUSPECTED')
    world.callback('agent1')
    await world.time.advance(2 * minute)
    expect(codes(world)).toContain('RECEIVER_SUSPECTED resolved')
  })
})

const interval = 15 * minute
const slow = { kind: 'slow', effectAfterMs: 100, answerAfterMs: 20 * second } as const

describe('a proof is of the time when it was asked for, also if the subscription ended before the answer came', () => {
  test('of the create that made it', async () => {
    const world = new World({ seed: 1, usernames: ['agent0'] })
    world.nextOutcomes.push(slow)
    world.start()
    await world.time.advance(10 * second)
    world.end(['agent0'])
    await world.time.advance(interval + minute)
    expect(world.gaps).toHaveLength(1)
    expect(gapsNotReported(world)).toEqual([])
  })

  test.each([
    ['a create that was answered 409', 0],
    ['an update', 3],
  ])('of %s', async (_what, probesBefore) => {
    const world = await settledWorld({ users: 1 })
    for (let probe = 0; probe < probesBefore; probe++)
      await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const before = world.requests.length
    world.nextOutcomes.push(slow)
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(10 * second)
    expect(world.requests).toHaveLength(before + 1)
    world.end(['agent0'])
    await world.time.advance(interval + minute)
    expect(world.gaps).toHaveLength(1)
    expect(gapsNotReported(world)).toEqual([])
  })
})

describe('a process that is killed before the answer to its probe', () => {
  test.each([true, false])(
    'lets the next one find what it made (with parameters: %s)',
    async (hasParameters) => {
      const { parameters: _, ...withoutParameters } = defaultConfiguration
      const configuration = hasParameters ? defaultConfiguration : withoutParameters
      // One user alone: what is written of another would write the intent of this one, too.
      const world = await settledWorld({ users: 1, configuration })
      world.end(['agent0'])
      world.nextOutcomes.push({ kind: 'silent', effectAfterMs: 100 })
      nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
      await world.time.advance(second)
      world.kill(nodeOf(world))
      world.start()
      await world.time.advance(interval)
      const { keeper, process } = nodeOf(world)
      const [real] = world.service.activeFor('agent0')
      expect(process.run(() => keeper.subscription('agent0'))?.subscriptionId).toBe(real?.id)
      expect(problemsAtTheService(world)).toEqual([])
      expect(gapsNotReported(world)).toEqual([])
    },
  )
})

describe('a first create without an answer', () => {
  test('whose subscription ended before it was found is a gap of unknown beginning', async () => {
    const world = await settledWorld({ users: 1 })
    world.want('newcomer')
    world.nextOutcomes.push({ kind: 'answered' }, { kind: 'silent', effectAfterMs: second })
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(10 * second)
    world.end(['newcomer'])
    await world.time.advance(interval)
    expect(world.gaps.map(({ what }) => [what.username, what.lastProvenAt])).toEqual([
      ['newcomer', undefined],
    ])
    expect(gapsNotReported(world)).toEqual([])
  })
})

test('who is restored ever more rarely is looked at in turn again after a delivery', async () => {
  const { parameters: _, ...configuration } = defaultConfiguration
  const world = await settledWorld({ users: 1, configuration, keeper: { sweepIntervalMs: 2 * minute } })
  for (let restore = 0; restore < 5; restore++) {
    world.end(['agent0'])
    await world.time.advance(interval + 2 * minute)
  }
  world.end(['agent0'])
  await world.time.advance(3 * minute)
  expect(world.gaps).toHaveLength(6)
  // A plain create is the only proof, and might restore too soon: no probe is made for a quarter of an hour.
  world.callback('agent0')
  await world.time.advance(second)
  world.end(['agent0'])
  await world.time.advance(4 * minute)
  expect(world.gaps).toHaveLength(7)
})

test('an unknown subscription that delivers does not make unsubscribeAll subscribe everybody again', async () => {
  const users = 60
  const world = await settledWorld({ users, keeper: { maxRequestsPerSecond: 1 } })
  const { keeper, process } = nodeOf(world)
  await world.time.advance(minute)
  process.run(() => keeper.observe({}, { subscriptionId: 999_999 }))
  // A minute after the delivery the keeper would look for the subscription, and ask the roster for that.
  await world.time.advance(45 * second)
  const report = await world.settled(nodeOf(world), () => keeper.unsubscribeAll())
  expect(report).toMatchObject({ wanted: 0, active: 0, removed: users, failed: [] })
  expect(world.service.active()).toEqual([])
})
