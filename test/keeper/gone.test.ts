/** A subscription that is called unknown, by the service or by what stands in front of it. */
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/invariants.js'
import { agents, minute, nodeOf, settledWorld, useVirtualProcesses } from './model/setup.js'
import type { World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute

/** For an hour every proof by id is answered 404: by a gateway without a route. */
async function afterGateway(): Promise<World> {
  const world = await settledWorld({ users: 2 })
  world.weather = () =>
    world.requests.at(-1)?.kind === 'update' ? { kind: 'status', status: 404 } : { kind: 'answered' }
  await world.time.advance(4 * interval)
  expect(statesOf(world)).toEqual(['conflict', 'conflict'])
  return world
}

function statesOf(world: World): (string | undefined)[] {
  const { process, keeper } = nodeOf(world)
  return agents(2).map((name) => process.run(() => keeper.subscription(name))?.state)
}

describe('a conflict with a subscription that was called unknown', () => {
  test('is over at the next visit if its id is known after all, and nothing is replaced', async () => {
    const world = await afterGateway()
    world.weather = undefined
    await world.time.advance(interval + minute)
    expect(statesOf(world)).toEqual(['active', 'active'])
    expect(world.problems.at(-1)?.what).toMatchObject({ code: 'CONFLICT', resolved: true })
    expect(world.requests.filter(({ kind }) => kind === 'recreate')).toEqual([])
    expect(world.gaps).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('is over with a delivery that comes too late to be one from before', async () => {
    const world = await afterGateway()
    while (world.requestsSince(world.time.nowMs - 2 * minute).length > 0) await world.time.advance(minute)
    for (const name of agents(2)) world.callback(name)
    await world.time.advance(100)
    expect(statesOf(world)).toEqual(['active', 'active'])
    world.weather = undefined
    await world.time.advance(minute)
    expect(world.problems.at(-1)?.what).toMatchObject({ code: 'CONFLICT', resolved: true })
  })

  test('stays one while another subscription stands in the place', async () => {
    const world = await settledWorld({ users: 1 })
    world.subscribeSomebodyElse(['agent0'])
    await world.time.advance(8 * interval)
    const [open] = nodeOf(world).process.run(() => nodeOf(world).keeper.status()).problems
    expect(open?.code).toBe('CONFLICT')
    const updates = world.requests.filter(({ kind }) => kind === 'update')
    expect(updates.length).toBeLessThanOrEqual(8)
    expect(problemsAtTheService(world)).toEqual(['agent0 has 0 subscriptions'])
  })
})

describe('a subscription in whose place somebody else’s was found', () => {
  /** Somebody else has an equal one, and a process that knows so is killed. */
  async function afterKill(existing: 'replace' | 'report'): Promise<World> {
    const world = await settledWorld({ users: 1, keeper: { existing } })
    world.subscribeSomebodyElse(['agent0'])
    await world.time.advance(4 * interval)
    expect(stateOf(world)).toBe('conflict')
    world.kill(nodeOf(world))
    return world
  }

  function stateOf(world: World): string | undefined {
    const { process, keeper } = nodeOf(world)
    return process.run(() => keeper.subscription('agent0'))?.state
  }

  for (const existing of ['replace', 'report'] as const) {
    test(`is no more replaced by the process after one that was killed, with existing: ${existing}`, async () => {
      const world = await afterKill(existing)
      world.start()
      await world.time.advance(2 * interval)
      expect(stateOf(world)).toBe('conflict')
      expect(world.requests.filter(({ kind }) => kind === 'recreate')).toEqual([])
      world.unsubscribeSomebodyElse()
      await world.time.advance(interval + minute)
      expect(stateOf(world)).toBe('active')
      expect(problemsAtTheService(world)).toEqual([])
    })
  }

  test('is found again by the next process, if it was restored just when a process was killed', async () => {
    const world = await afterKill('report')
    world.unsubscribeSomebodyElse()
    world.start()
    world.nextFates.push({ kind: 'silent', effectAfterMs: 10 })
    while (world.service.activeFor('agent0').length === 0) await world.time.advance(minute / 60)
    world.kill(nodeOf(world))
    world.start()
    await world.time.advance(interval)
    expect(stateOf(world)).toBe('active')
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('is not replaced after a loss of the store either', async () => {
    const world = await settledWorld({ users: 1, keeper: { existing: 'report' } })
    world.subscribeSomebodyElse(['agent0'])
    await world.time.advance(4 * interval)
    world.forget()
    world.start()
    await world.time.advance(interval)
    expect(world.requests.filter(({ kind }) => kind === 'recreate')).toEqual([])
  })

  test('is not restored while the store fails: nobody could know afterwards whose it is', async () => {
    const world = await afterKill('report')
    world.start()
    await world.time.advance(minute)
    world.store.mode = 'failing'
    world.unsubscribeSomebodyElse()
    await world.time.advance(2 * interval)
    expect(world.service.activeFor('agent0')).toEqual([])
    world.store.mode = 'working'
    await world.time.advance(interval)
    expect(stateOf(world)).toBe('active')
  })
})
