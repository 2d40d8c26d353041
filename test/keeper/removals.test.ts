/** Who may be removed because the roster lacks them, and when: on the model of the service. */
import { describe, expect, test } from 'vitest'
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

useVirtualProcesses()

const interval = 15 * minute

describe('a roster that lacks', () => {
  test.each([
    { lacks: 9, of: 10, isBelieved: true },
    { lacks: 6, of: 11, isBelieved: false },
    { lacks: 5, of: 11, isBelieved: true },
    { lacks: 6, of: 12, isBelieved: true },
    { lacks: 7, of: 12, isBelieved: false },
  ])('$lacks of $of recorded users is believed: $isBelieved', async ({ lacks, of, isBelieved }) => {
    const world = await settledWorld({ users: of })
    for (const name of agents(lacks)) world.wantNoLonger(name)
    const { removed } = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(removed).toBe(isBelieved ? lacks : 0)
    expect(codes(world)).toEqual(isBelieved ? [] : ['ROSTER'])
    expect(world.service.active()).toHaveLength(isBelieved ? of - lacks : of)
  })

  test('many, and then many more, is measured by those who were recorded when one was believed last', async () => {
    const world = await settledWorld({ users: 20 })
    for (const name of agents(11)) world.wantNoLonger(name)
    for (let count = 0; count < 3; count++) {
      await world.settled(nodeOf(world), (keeper) => keeper.sweep())
      expect(world.service.active()).toHaveLength(20)
    }
    for (const name of agents(2)) world.want(name)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(world.service.active()).toHaveLength(11)
    expect(codes(world)).toEqual(['ROSTER', 'ROSTER is over'])
  })

  test('one who was removed just now, and has not been ended yet, is not said to lack him again', async () => {
    const world = await settledWorld({ users: 12 })
    world.weather = () => ({ kind: 'status', status: 503 })
    for (const name of agents(6)) world.wantNoLonger(name)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    for (const name of agents(9)) world.wantNoLonger(name)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(world.service.active()).toHaveLength(12)
    world.weather = undefined
    await world.time.advance(interval)
    expect(world.service.active()).toHaveLength(3)
    expect(codes(world)).not.toContain('ROSTER')
  })
})

describe('a roster function', () => {
  test('that takes more than 30 seconds is a problem then, and removes nobody', async () => {
    const world = await settledWorld({ users: 2 })
    world.rosterMode = 'hanging'
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(29 * second)
    expect(codes(world)).toEqual([])
    await world.time.advance(2 * second)
    expect(codes(world)).toEqual(['ROSTER'])
    expect(world.service.active()).toHaveLength(2)
  })

  test('whose list has something else than names in it removes nobody', async () => {
    const usernames = { list: ['agent0', 'agent1', 'agent2'] as unknown[] }
    const world = await settledWorld({ users: 3, keeper: { usernames: () => usernames.list as string[] } })
    usernames.list = ['agent0', 1]
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toEqual(['ROSTER'])
    expect(world.service.active()).toHaveLength(3)
  })

  test('is asked by the watch once in an interval, and what it says is carried out at once', async () => {
    const world = await settledWorld({ users: 5, keeper: { sweepIntervalMs: hour } })
    await world.time.advance(hour - 2 * minute)
    // Not one whose turn it is then, whom a probe would find by chance.
    world.wantNoLonger('agent1')
    world.want('newcomer')
    const before = world.rostersRead.length
    while (world.rostersRead.length === before) await world.time.advance(20)
    expect(world.service.activeFor('agent1')).toHaveLength(1)
    await world.time.advance(3 * second)
    expect(world.service.activeFor('agent1')).toEqual([])
    expect(world.service.activeFor('newcomer')).toHaveLength(1)
  })
})

describe('a user who leaves the roster', () => {
  test('takes his trouble along: nobody is in conflict any more', async () => {
    const world = await settledWorld({ users: 3 })
    world.subscribeSomebodyElse(['agent1'])
    await world.time.advance(5 * interval)
    expect(codes(world)).toContain('CONFLICT')
    world.wantNoLonger('agent1')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toContain('CONFLICT is over')
  })

  test('and had ended alone leaves no receiver suspected', async () => {
    const world = await settledWorld({ users: 3 })
    world.end(['agent1'])
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toEqual(['RECEIVER_SUSPECTED'])
    world.wantNoLonger('agent1')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toEqual(['RECEIVER_SUSPECTED', 'RECEIVER_SUSPECTED is over'])
  })
})
