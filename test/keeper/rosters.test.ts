/** What the roster function says, and when: on the model of the service. */
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/invariants.js'
import {
  agents,
  minute,
  nodeOf,
  second,
  settledWorld,
  troublesOf,
  useVirtualProcesses,
} from './model/setup.js'
import type { World } from './model/world.js'

useVirtualProcesses()

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

test('a roster that was asked for earlier, and answered later than another, removes nobody who has come since', async () => {
  const wanted = new Set(agents(2))
  let answersAfterMs = 10
  const usernames = () => {
    const names = [...wanted]
    return new Promise<string[]>((resolve) => setTimeout(resolve, answersAfterMs, names))
  }
  const world = await settledWorld({ users: 2, keeper: { usernames } })
  answersAfterMs = 20 * second
  // By now the keeper has asked by itself, and waits.
  await world.time.advance(14 * minute)
  answersAfterMs = 10
  wanted.add('newcomer')
  world.want('newcomer')
  await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  expect(world.service.activeFor('newcomer')).toHaveLength(1)
  await world.time.advance(minute)
  expect(world.service.activeFor('newcomer')).toHaveLength(1)
  expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toEqual([])
})
