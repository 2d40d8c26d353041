/** A route is wrong if it does not find an id that the service gave just now. */
import { describe, expect, test } from 'vitest'
import { hour, minute, type World } from './convergence/world.js'
import {
  agents,
  nodeOf,
  problemCodes,
  problemsOf,
  settledWorld,
  statesOf,
  swept,
  tellStories,
  worldOf,
} from './stories.js'

tellStories()

describe('on a service whose update and unsubscribe live elsewhere', () => {
  test('nothing is replaced, ends are restored, and ROUTES names the settings', async () => {
    const world = worldOf({ users: 20 })
    world.hasWrongRoutes = true
    const node = world.start()
    await world.time.advance(40 * minute)
    expect(problemCodes(node)).toEqual(['ROUTES'])
    const [problem] = problemsOf(node)
    expect(problem?.message).toContain('`routes.update`')
    expect(problem?.message).toContain('`routes.unsubscribe`')
    expect(problem?.error).toMatchObject({ code: 'SUBSCRIPTION_NOT_FOUND', status: 404 })
    expect(world.gaps).toEqual([])
    expect(Object.values(statesOf(node))).toEqual(agents(20).map(() => 'active'))
    world.end(['agent7'])
    await world.time.advance(16 * minute)
    expect(world.causes).toEqual(['agent7 ended'])
    const before = world.requests.length
    await world.time.advance(2 * hour)
    expect(world.requests.length - before).toBeLessThan(20 * 8 * 1.25)
  })

  test('a process that starts replaces one subscription, to test the route with a new id, and no other one later', async () => {
    const world = worldOf({ users: 20 })
    world.hasWrongRoutes = true
    world.start()
    await world.time.advance(minute)
    nodeOf(world).process.kill()
    const before = world.ids
    const { node, report } = await swept(world)
    expect(report).toMatchObject({ active: 20, created: 0, restored: 1, problems: [{ code: 'ROUTES' }] })
    node.process.run(() => node.keeper.start())
    await world.time.advance(3 * hour)
    expect(Object.entries(world.ids).filter(([name, id]) => before[name] !== id)).toHaveLength(1)
    expect(world.gaps).toMatchObject([{ what: { cause: 'replaced' } }])
  })

  test('no user is counted as removed, and at most one subscription is left by the proof', async () => {
    const world = worldOf({ users: 20 })
    world.hasWrongRoutes = true
    const node = world.start()
    await world.time.advance(minute)
    const report = await world.settled(node, (keeper) => keeper.unsubscribeAll())
    expect(report).toMatchObject({ removed: 0, problems: [{ code: 'ROUTES' }] })
    expect(report.failed).toHaveLength(20)
    expect(world.service.active('keeper')).toHaveLength(20)

    // Now all really end: what the test of the route makes cannot be ended either.
    world.end(agents(20))
    await world.time.advance(15 * minute)
    const again = await world.settled(node, (keeper) => keeper.unsubscribeAll())
    expect(again).toMatchObject({ removed: 0 })
    expect(again.failed).toHaveLength(20)
    expect(world.service.active('keeper')).toHaveLength(1)
  })
})

test('where every subscription had ended, unsubscribeAll reports all as removed for a handful of requests', async () => {
  const world = await settledWorld({ users: 20 })
  nodeOf(world).process.kill()
  world.end(agents(20))
  const node = world.start(undefined, false)
  const before = world.requests.length
  const report = await world.settled(node, (keeper) => keeper.unsubscribeAll())
  expect(report).toMatchObject({ removed: 20, failed: [], problems: [] })
  expect(world.requests.length - before).toBeLessThanOrEqual(25)
  expect(world.service.active('keeper')).toEqual([])
})

/** Another program ends the subscriptions of these users, and makes the same ones. */
function replaceSubscriptions(world: World, usernames: readonly string[]): void {
  for (const name of usernames) {
    world.end([name])
    const { configuration } = world
    const parameters = configuration.parameters ?? {}
    const request = { ...configuration, usernames: [name], recreateIfExists: false, parameters }
    world.service.create(request, 'keeper')
  }
}

test('ROUTES names what else replaces subscriptions: a process without the store, a user in two spellings', async () => {
  const world = await settledWorld({ users: 2 })
  world.isUncertain = true
  replaceSubscriptions(world, agents(2))
  await world.time.advance(20 * minute)
  const message = expect.stringMatching(/one store, .* Alice as alice/)
  expect(problemsOf(nodeOf(world))).toMatchObject([{ code: 'ROUTES', message }])
})

describe('ids of a store that was rolled back', () => {
  /** The first of the users has another id than the store says; or all have. */
  async function withStaleIds(count: number) {
    const world = await settledWorld({ users: 20 })
    nodeOf(world).process.kill()
    world.isUncertain = true
    replaceSubscriptions(world, agents(count))
    return { world, node: world.start(undefined, false) }
  }

  test.each([1, 20])('of which %i are wrong, block no removal', async (count) => {
    const { node, world } = await withStaleIds(count)
    const report = await world.settled(node, (keeper) => keeper.unsubscribeAll())
    expect(report).toMatchObject({ removed: 20, failed: [], problems: [] })
    // Limits in docs/keeper.md: only the user who tests the route gets a new id.
    const left = world.service.active('keeper').map(({ usernames }) => usernames.join())
    expect(left.filter((name) => !agents(count).includes(name))).toEqual([])
  })
})

test('an unsubscribe that is answered 2xx and ends nothing is found by one create per process', async () => {
  const world = await settledWorld({ users: 20 })
  world.service.end = () => 204
  const before = world.requests.length
  const report = await world.settled(nodeOf(world), (keeper) => keeper.unsubscribeAll())
  const message = expect.stringContaining('answered 2xx')
  expect(report).toMatchObject({ removed: 0, problems: [{ code: 'ROUTES', message }] })
  expect(report.failed).toHaveLength(20)
  expect(world.requests.length - before).toBe(2)
})

describe('where every subscription had ended, on a service that says so by a status', () => {
  test.each([404, 400, 409, 422])('%i: a process that starts restores every user', async (status) => {
    const world = await settledWorld({ users: 5 })
    world.statusOfEnded = status
    nodeOf(world).process.kill()
    world.end(agents(5))
    const { node, report } = await swept(world)
    expect(report).toMatchObject({ active: 5, restored: 5, failed: [] })
    expect(problemCodes(node)).toEqual(['RECEIVER_SUSPECTED'])
  })

  test('400 to an update of a subscription that exists is a failure, and replaces nothing', async () => {
    const world = await settledWorld({ users: 1 })
    const before = world.ids
    nodeOf(world).process.kill()
    const node = world.start(undefined, false)
    world.nextOutcomes.push({ kind: 'status', status: 400 })
    const report = await world.settled(node, (keeper) => keeper.sweep())
    expect(world.requests.slice(-2).map(({ kind }) => kind)).toEqual(['update', 'create'])
    expect(report).toMatchObject({ active: 0, restored: 0, failed: [{ username: 'agent0' }] })
    expect(problemCodes(node)).toEqual(['SERVICE'])
    expect(world.ids).toEqual(before)
  })
})
