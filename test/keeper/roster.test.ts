/** Who may be removed because the roster lacks them, and when: on the model of the service. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { KeeperStore } from '../../src/keeper/keeper-store.js'
import { Members } from '../../src/keeper/members.js'
import { Problems } from '../../src/keeper/reporter.js'
import { Roster } from '../../src/keeper/roster.js'
import { Users } from '../../src/keeper/users.js'
import { problemsAtTheService } from './model/rules/final-state.js'
import {
  agents,
  codes,
  hour,
  minute,
  nodeOf,
  second,
  settledWorld,
  troublesOf,
  useVirtualProcesses,
} from './model/setup.js'
import type { World } from './model/world.js'

useVirtualProcesses()

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
    expect(codes(world)).toEqual(['ROSTER', 'ROSTER resolved'])
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
  test('and had ended alone leaves no receiver suspected', async () => {
    const world = await settledWorld({ users: 3 })
    world.end(['agent1'])
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toEqual(['RECEIVER_SUSPECTED'])
    world.wantNoLonger('agent1')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toEqual(['RECEIVER_SUSPECTED', 'RECEIVER_SUSPECTED resolved'])
  })
})

const interval = 15 * minute

describe('a roster of others', () => {
  const others = Array.from({ length: 14 }, (_, index) => `other${index}`)

  /** All who were wanted are gone from the roster, and more have come. */
  async function replaceRoster(world: World): Promise<void> {
    for (const name of agents(12)) world.wantNoLonger(name)
    for (const name of others) world.want(name)
    await world.time.advance(interval + minute)
  }

  test('is not believed by the next process either, though it has added more users than it lacks', async () => {
    const world = await settledWorld({ users: 12 })
    await replaceRoster(world)
    expect(troublesOf(nodeOf(world))).toEqual(['ROSTER'])
    expect(world.service.active()).toHaveLength(26)
    world.kill(nodeOf(world))
    world.start()
    await world.time.advance(2 * interval)
    expect(troublesOf(nodeOf(world))).toEqual(['ROSTER'])
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toEqual([])
  })

  test('counts for as much as any, once it was allowed to remove', async () => {
    const world = await settledWorld({ users: 12 })
    await replaceRoster(world)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep({ allowRemovals: true }))
    expect(world.service.active()).toHaveLength(14)
    for (const name of others) world.wantNoLonger(name)
    world.want('somebody')
    await world.time.advance(interval + minute)
    expect(troublesOf(nodeOf(world))).toEqual(['ROSTER'])
    expect(world.service.active()).toHaveLength(15)
  })

  test('is made up for by the right one, which ends what the wrong one has added', async () => {
    const world = await settledWorld({ users: 12 })
    await replaceRoster(world)
    for (const name of others) world.wantNoLonger(name)
    for (const name of agents(12)) world.want(name)
    await world.time.advance(interval + minute)
    expect(troublesOf(nodeOf(world))).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.service.active()).toHaveLength(12)
  })
})

describe('a roster that was asked for earlier, and answers later,', () => {
  /** The keeper has asked by itself, and waits 20 seconds for the answer. */
  async function waitingWorld() {
    const wanted = new Set(agents(2))
    const answer = { afterMs: 10 }
    const usernames = () => {
      const names = [...wanted]
      return new Promise<string[]>((resolve) => setTimeout(resolve, answer.afterMs, names))
    }
    const world = await settledWorld({ users: 2, processes: 2, keeper: { usernames } })
    answer.afterMs = 20 * second
    await world.time.advance(14 * minute + 3 * second)
    answer.afterMs = 10
    wanted.add('newcomer')
    world.want('newcomer')
    return world
  }

  async function staysSubscribed(world: World): Promise<void> {
    expect(world.service.activeFor('newcomer')).toHaveLength(1)
    await world.time.advance(minute)
    expect(world.service.activeFor('newcomer')).toHaveLength(1)
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toEqual([])
  }

  test('removes no user that a sweep of this process has added since', async () => {
    const world = await waitingWorld()
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    await staysSubscribed(world)
  })

  test('removes no user that another process has added since', async () => {
    const world = await waitingWorld()
    const other = world.start(world.configuration, false)
    await world.settled(other, (keeper) => keeper.sweep())
    await staysSubscribed(world)
  })
})

test('a user that leaves the roster while a proof of it is being written down is unsubscribed at once', async () => {
  let answer: ((names: string[]) => void) | undefined
  let isSlow = false
  const usernames = () =>
    isSlow
      ? new Promise<string[]>((resolve) => {
          answer = resolve
        })
      : agents(2)
  const world = await settledWorld({ users: 2, keeper: { usernames } })
  await world.time.advance(14 * minute - 5 * second)
  isSlow = true
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await world.time.advance(1)
  }
  const isClaimed = () => world.store.record('agent1')?.claim !== undefined
  // The roster is asked once per interval, and just then the last user is proven.
  await until(() => answer !== undefined)
  await until(() => isClaimed())
  await until(() => !isClaimed())
  answer?.(['agent0'])
  await world.time.advance(5 * second)
  expect(world.service.activeFor('agent1')).toEqual([])
  expect(world.service.activeFor('agent0')).toHaveLength(1)
})

test('a reading that ends later than one of the same moment changes nothing', async () => {
  const problems = new Problems(() => {})
  const users = new Users()
  const members = new Members(new KeeperStore(new Map(), 'coaching', problems))
  let answer: ((names: string[]) => void) | undefined
  const usernames = () =>
    new Promise<string[]>((resolve) => {
      answer = resolve
    })
  const roster = new Roster({ usernames, maxRemovedShare: 0.5, users, members, problems })
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000)
  onTestFinished(() => clock.mockRestore())
  const earlier = roster.read()
  await roster.read({ wantsNobody: true })
  await vi.waitUntil(() => answer !== undefined)
  answer?.(['alice'])
  await earlier
  expect([...users]).toEqual([])
})
