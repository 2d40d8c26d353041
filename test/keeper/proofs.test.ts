/** What counts as a proof, and since when: no gap may begin later than its end can have been. On the model of the service. */
import { describe, expect, test } from 'vitest'
import { gapsNotReported } from './model/gaps.js'
import { problemsAtTheService } from './model/invariants.js'
import { minute, nodeOf, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import { defaultConfiguration, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute
const slow = { kind: 'slow', effectAfterMs: 100, answerAfterMs: 20 * second } as const

describe('a proof is of the time when it was asked for, also if the subscription ended before the answer came', () => {
  test('of the create that made it', async () => {
    const world = new World({ seed: 1, usernames: ['agent0'] })
    world.nextFates.push(slow)
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
    world.nextFates.push(slow)
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(10 * second)
    expect(world.requests).toHaveLength(before + 1)
    world.end(['agent0'])
    await world.time.advance(interval + minute)
    expect(world.gaps).toHaveLength(1)
    expect(gapsNotReported(world)).toEqual([])
  })
})

describe('a proof by id', () => {
  test('that is due while an end is followed up comes after that: a probe that suspects an end is none of the four', async () => {
    const world = await settledWorld({ users: 2, keeper: { concurrency: 1 } })
    const sweep = () => world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const kindsFor1 = (since: number) =>
      world.requests
        .slice(since)
        .filter(({ username }) => username === 'agent1')
        .map(({ kind }) => kind)
    while (kindsFor1(0).at(-1) !== 'update') await sweep()
    for (let probe = 0; probe < 3; probe++) await sweep()
    world.end(['agent0'])
    const whenFound = world.requests.length
    await sweep()
    expect(kindsFor1(whenFound)).toEqual(['create'])
    const afterwards = world.requests.length
    await sweep()
    expect(kindsFor1(afterwards)).toEqual(['update'])
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
      world.nextFates.push({ kind: 'silent', effectAfterMs: 100 })
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
    world.nextFates.push({ kind: 'answered' }, { kind: 'silent', effectAfterMs: second })
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
