/** Another subscription stands in the way: of somebody else, or one that the keeper made and lost. */
import { describe, expect, test } from 'vitest'
import { agents, hour, minute, nodeOf, settledWorld, troublesOf, useVirtualProcesses } from './model/setup.js'
import { defaultConfiguration, type World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute
const day = 24 * hour

/** Somebody else's subscription, which looks the same, takes the place of one that ended. */
function subscribeTwin(world: World, username: string): void {
  world.end([username])
  const { notificationTypes, callbackUrl } = defaultConfiguration
  const request = {
    usernames: [username],
    notificationTypes,
    callbackUrl,
    recreateIfExists: false,
    parameters: {},
  }
  world.service.create(request, 'somebody else')
}

function recreates(world: World): number {
  return world.requests.filter(({ kind }) => kind === 'recreate').length
}

function stateOf(world: World, username: string) {
  const { keeper, process } = nodeOf(world)
  return process.run(() => keeper.subscription(username))?.state
}

describe('a twin of somebody else', () => {
  test('is replaced once a day, and a CONFLICT after that', async () => {
    const world = await settledWorld({ users: 2 })
    subscribeTwin(world, 'agent0')
    await world.time.advance(5 * interval)
    expect([recreates(world), stateOf(world, 'agent0')]).toEqual([1, 'active'])

    subscribeTwin(world, 'agent0')
    await world.time.advance(5 * interval)
    expect([recreates(world), stateOf(world, 'agent0')]).toEqual([1, 'conflict'])
    expect(troublesOf(nodeOf(world))).toEqual(['CONFLICT'])

    await world.time.advance(day)
    expect([recreates(world), stateOf(world, 'agent0')]).toEqual([2, 'active'])
    expect(troublesOf(nodeOf(world))).toEqual([])
  }, 30_000)

  test('is replaced once a day also where the answer to that was lost', async () => {
    const world = await settledWorld({ users: 2 })
    subscribeTwin(world, 'agent0')
    world.everyOutcome = () => {
      if (world.requests.at(-1)?.kind !== 'recreate') return { kind: 'answered' }
      world.everyOutcome = undefined
      return { kind: 'silent', effectAfterMs: 1_000 }
    }
    await world.time.advance(6 * interval)
    // The second one settles the first.
    expect([recreates(world), stateOf(world, 'agent0')]).toEqual([2, 'active'])
    subscribeTwin(world, 'agent0')
    await world.time.advance(5 * interval)
    expect([recreates(world), stateOf(world, 'agent0')]).toEqual([2, 'conflict'])
  })

  test('is never replaced with `existing: report`', async () => {
    const world = await settledWorld({ users: 2, keeper: { existing: 'report' } })
    subscribeTwin(world, 'agent0')
    await world.time.advance(day + hour)
    expect([recreates(world), stateOf(world, 'agent0')]).toEqual([0, 'conflict'])
  }, 30_000)

  test('is no longer a CONFLICT when somebody ends it', async () => {
    const world = await settledWorld({ users: 2, keeper: { existing: 'report' } })
    subscribeTwin(world, 'agent0')
    await world.time.advance(5 * interval)
    world.unsubscribeSomebodyElse()
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(stateOf(world, 'agent0')).toBe('active')
    expect(troublesOf(nodeOf(world))).not.toContain('CONFLICT')
  })

  test('is tried as often by three processes as by one, and all of them report it', async () => {
    const requests: number[] = []
    for (const processes of [1, 3]) {
      const world = await settledWorld({ users: 1, processes, keeper: { existing: 'report' } })
      for (let count = 1; count < processes; count++) world.start()
      await world.time.advance(interval)
      subscribeTwin(world, 'agent0')
      await world.time.advance(4 * interval)
      const before = world.requests.length
      await world.time.advance(20 * interval)
      requests.push(world.requests.length - before)
      expect(world.nodes.map(troublesOf)).toEqual(world.nodes.map(() => ['CONFLICT']))
    }
    const [one = 0, three = 0] = requests
    expect(three).toBeLessThanOrEqual(one * 1.1)
  }, 30_000)
})

test('a user who is refused is tried as often by three processes as by one', async () => {
  const requests: number[] = []
  for (const processes of [1, 3]) {
    const world = await settledWorld({ users: 3, processes })
    for (let count = 1; count < processes; count++) world.start()
    await world.time.advance(interval)
    world.refused.add('agent0')
    await world.time.advance(2 * interval)
    const before = world.requests.length
    await world.time.advance(10 * interval)
    requests.push(world.requests.slice(before).filter(({ username }) => username === 'agent0').length)
  }
  const [one = 0, three = 0] = requests
  expect(three).toBeLessThanOrEqual(one * 1.3)
})

test('a joint subscription is a CONFLICT of everybody in it, and a sweep after its end subscribes them', async () => {
  const world = await settledWorld({ users: 3 })
  world.subscribeSomebodyElse(agents(3))
  await world.time.advance(5 * interval)
  expect(agents(3).map((name) => stateOf(world, name))).toEqual(['conflict', 'conflict', 'conflict'])
  world.unsubscribeSomebodyElse()
  const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  expect(report).toMatchObject({ active: 3, failed: [] })
  expect(troublesOf(nodeOf(world))).not.toContain('CONFLICT')
})
