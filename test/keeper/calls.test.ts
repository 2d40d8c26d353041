/** Lost, late and contradictory answers of the service. */
import { describe, expect, test } from 'vitest'
import { minute, second, type World } from './convergence/world.js'
import { nodeOf, problemCodes, settledWorld, statesOf, tellStories, worldOf } from './stories.js'

tellStories()

describe('a create whose answer is lost', () => {
  test('is settled two minutes later: by an update where the id is known', async () => {
    const world = await settledWorld({ users: 1 })
    const [id] = Object.values(world.ids)
    world.nextOutcomes.push({ kind: 'answered' }, { kind: 'reset', effectAfterMs: 0 })
    await world.time.advance(35 * minute)
    expect(world.requestsSince(16 * minute)).toEqual(['create agent0', 'update agent0'])
    expect(Object.values(world.ids)).toEqual([id])
    expect(world.gaps).toEqual([])
  })

  test('of a new user ends as a gap: the subscription is created anew to learn its id', async () => {
    const world = worldOf({ users: 1 })
    world.nextOutcomes.push({ kind: 'reset', effectAfterMs: 0 })
    world.start()
    await world.time.advance(3 * minute)
    expect(world.requestsSince(0)).toEqual(['create agent0', 'create agent0', 'recreate agent0'])
    expect(world.gaps.map(({ what }) => what)).toMatchObject([
      { username: 'agent0', cause: 'replaced', lastProvenAt: undefined },
    ])
    expect(statesOf(nodeOf(world))).toEqual({ agent0: 'active' })
  })

  test('keeps the sweep waiting until it is settled, and the sweep reports the user as restored', async () => {
    const world = worldOf({ users: 3 })
    const node = world.start(undefined, false)
    world.nextOutcomes.push({ kind: 'late', effectAfterMs: 50 * second })
    const report = await world.settled(node, (keeper) => keeper.sweep())
    expect(report).toMatchObject({ wanted: 3, active: 3, created: 2, restored: 1, failed: [] })
    expect(world.time.nowMs).toBeGreaterThan(2 * minute)
  })
})

test('a process that crashed between claim and answer delays its user by two minutes', async () => {
  const world = worldOf({ users: 2 })
  world.outage = { kind: 'late', effectAfterMs: 0 }
  const dead = world.start()
  await world.time.advance(5 * second)
  dead.process.kill()
  world.outage = undefined
  world.start()
  await world.time.advance(100 * second)
  expect(world.requestsSince(5 * second)).toEqual([])
  await world.time.advance(minute)
  expect(statesOf(nodeOf(world))).toEqual({ agent0: 'active', agent1: 'active' })
  expect(world.causes.sort()).toEqual(['agent0 replaced', 'agent1 replaced'])
})

describe('between claim and call', () => {
  test.each(['suspend', 'sleep'] as const)(
    'a process in %s until its claim was taken over sends nothing',
    async (standStill) => {
      const world = await settledWorld({ users: 1 })
      const slow = nodeOf(world)
      void slow.process.run(() => slow.keeper.sweep())
      while (!world.store.keys.some((key) => world.store.text(key)?.includes('"claim"'))) {
        await world.time.advance(1)
      }
      slow.process[standStill]()
      const before = world.requests.length
      world.start()
      world.nextOutcomes.push({ kind: 'late', effectAfterMs: 0, answerAfterMs: 20 * second })
      while (world.requests.length === before) await world.time.advance(second)
      slow.process.resume()
      await world.time.advance(10 * second)
      expect(world.requests).toHaveLength(before + 1)
    },
  )

  test('a stop comes before the call, which is not made, and leaves no claim', async () => {
    const world = await settledWorld({ users: 1 })
    const node = nodeOf(world)
    const hasClaim = () => world.store.keys.some((key) => world.store.text(key)?.includes('"claim"'))
    void node.process.run(() => node.keeper.sweep())
    while (!hasClaim()) await world.time.advance(1)
    const before = world.requests.length
    await world.settled(node, (keeper) => keeper.stop())
    expect(world.requests).toHaveLength(before)
    expect(hasClaim()).toBe(false)
  })

  test('a process that finds a newer configuration replaces nothing, and leaves no claim', async () => {
    const world = await settledWorld({ users: 1 })
    const twin = { ...world.configuration, usernames: ['agent1'], recreateIfExists: false, parameters: {} }
    world.service.create(twin, 'another app')
    world.want('agent1')
    while (!world.requestsSince(0).includes('create agent1')) await world.time.advance(5)
    const stored = JSON.parse(world.store.text('coaching:configuration') ?? '')
    const newer = { ...stored, generation: stored.generation + 1, hash: 'another' }
    world.store.replace('coaching:configuration', JSON.stringify(newer))
    await world.time.advance(20 * second)
    expect(world.requestsSince(0)).not.toContain('recreate agent1')
    expect(problemCodes(nodeOf(world))).toEqual(['SUPERSEDED'])
    // Its claim would keep the newer process from the user.
    expect(world.store.keys.filter((key) => world.store.text(key)?.includes('"claim"'))).toEqual([])
  })

  test('a user who has left meanwhile is not subscribed', async () => {
    const world = worldOf({ users: 2, keeper: { maxRequestsPerSecond: 0.05 } })
    const { process, keeper } = world.start(undefined, false)
    void process.run(() => keeper.sweep())
    await world.time.advance(2 * second)
    const waiting = world.requestsSince(0).includes('create agent0') ? 'agent1' : 'agent0'
    world.wanted.delete(waiting)
    void process.run(() => keeper.sweep())
    await world.time.advance(2 * minute)
    expect(world.requestsSince(0).filter((each) => each.endsWith(waiting))).toEqual([])
  })
})

test('an answer without an id that can be read costs one more create per quarter of an hour', async () => {
  const world = worldOf({ users: 1 })
  world.outage = { kind: 'garbled' }
  const node = world.start()
  await world.time.advance(14 * minute)
  expect(world.requestsSince(0)).toEqual(['create agent0', 'recreate agent0'])
  expect(problemCodes(node)).toEqual(['SERVICE'])
  expect(world.service.active('keeper')).toHaveLength(1)
  world.outage = undefined
  await world.time.advance(5 * minute)
  expect(problemCodes(node)).toEqual([])
  expect(statesOf(node)).toEqual({ agent0: 'active' })
  expect(world.service.active('keeper')).toHaveLength(1)
})

describe('another subscription in the way', () => {
  const occupy = ({ configuration, service }: World, usernames = ['agent0']) =>
    service.create({ ...configuration, usernames, recreateIfExists: false, parameters: {} }, 'another app')

  test('is replaced once a day if it is identical, and that is a gap', async () => {
    const world = worldOf({ users: 1 })
    occupy(world)
    const node = world.start(undefined, false)
    expect(await world.settled(node, (keeper) => keeper.sweep())).toMatchObject({ active: 1, restored: 1 })
    expect(world.causes).toEqual(['agent0 replaced'])
    expect(await world.settled(node, (keeper) => keeper.sweep())).toMatchObject({ active: 1, restored: 0 })
    world.end(['agent0'])
    occupy(world)
    // Every fourth proof is by the id, which is wrong now.
    for (let count = 0; count < 3; count++) await world.settled(node, (keeper) => keeper.sweep())
    const again = await world.settled(node, (keeper) => keeper.sweep())
    expect(again).toMatchObject({
      active: 0,
      failed: [{ username: 'agent0' }],
      problems: [{ code: 'CONFLICT' }],
    })
  })

  test('is left alone with `report`', async () => {
    const world = worldOf({ users: 1, keeper: { existing: 'report' } })
    occupy(world)
    world.start()
    await world.time.advance(20 * minute)
    expect(world.requests.map(({ kind }) => kind)).not.toContain('recreate')
    expect(problemCodes(nodeOf(world))).toEqual(['CONFLICT'])
    expect(statesOf(nodeOf(world))).toEqual({ agent0: 'conflict' })
  })

  test('costs one attempt per interval for all processes together, and ends with the obstacle', async () => {
    const world = worldOf({ users: 2 })
    const obstacle = occupy(world, ['agent0', 'other'])
    for (let count = 0; count < 3; count++) world.start()
    await world.time.advance(30 * minute)
    const before = world.requestsSince(0).filter((each) => each.endsWith('agent0')).length
    await world.time.advance(150 * minute)
    const attempts = world.requestsSince(0).filter((each) => each.endsWith('agent0')).length - before
    expect(attempts).toBeGreaterThan(8)
    expect(attempts).toBeLessThan(13)
    for (const node of world.nodes) expect(problemCodes(node)).toEqual(['CONFLICT'])
    if (obstacle.status === 201) world.service.end(obstacle.id, 'operator')
    await world.time.advance(32 * minute)
    for (const node of world.nodes) {
      expect(statesOf(node)).toEqual({ agent0: 'active', agent1: 'active' })
      expect(problemCodes(node)).toEqual([])
    }
  })
})
