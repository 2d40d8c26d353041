/** A store that lost what was in it, wholly or in part: it is written again, and nobody is subscribed twice. */
import type { KeeperGap } from 'notification-subscriber/keeper'
import { describe, expect, test } from 'vitest'
import type { NetworkOutcome } from './model/network-outcomes.js'
import { problemsAtTheService } from './model/rules/final-state.js'
import { gapsNotReported } from './model/rules/gaps.js'
import { isKept } from './model/service.js'
import {
  agents,
  codes,
  idsAtTheService,
  keptIds,
  minute,
  nodeOf,
  second,
  settledWorld,
  troublesOf,
  useVirtualProcesses,
} from './model/setup.js'
import { defaultConfiguration, type Node, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute
const { parameters: _, ...withoutParameters } = defaultConfiguration

test('an emptied store is written again by two processes, and none of 300 users is created anew', async () => {
  const world = await settledWorld({ users: 300, processes: 2 })
  world.start()
  await world.time.advance(2 * minute)
  const ids = idsAtTheService(world)
  world.store.forget()
  await world.time.advance(2 * interval)
  expect(idsAtTheService(world)).toEqual(ids)
  for (const node of world.nodes) {
    expect(keptIds(node)).toEqual(ids)
    expect(troublesOf(node)).toEqual([])
  }
  expect(codes(world)).toContain('STORE')
  expect(world.gaps).toEqual([])

  // What was written again is whole: the next process finds everybody.
  for (const node of [...world.nodes]) await world.stop(node)
  world.start()
  await world.time.advance(minute)
  expect(idsAtTheService(world)).toEqual(ids)
  expect(world.violations).toEqual([])
})

test('an empty store lets a new process replace everybody, once', async () => {
  const world = await settledWorld({ users: 5 })
  await world.stop(nodeOf(world))
  world.store.forget()
  const node = world.start()
  await world.time.advance(2 * interval)
  const replaced = world.requests.filter(({ kind }) => kind === 'recreate')
  expect(replaced).toHaveLength(5)
  expect(keptIds(node).sort()).toEqual(idsAtTheService(world).sort())
  expect(problemsAtTheService(world)).toEqual([])
})

describe.each([
  { hasParameters: true, configuration: defaultConfiguration },
  { hasParameters: false, configuration: withoutParameters },
])('an old dump (parameters: $hasParameters)', ({ hasParameters, configuration }) => {
  async function restoredDump(): Promise<World> {
    const world = await settledWorld({ users: 4, configuration })
    await world.time.advance(10 * minute)
    world.end(agents(4))
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    return world
  }

  test('is written over by the process that knows better', async () => {
    const world = await restoredDump()
    const ids = idsAtTheService(world)
    world.store.rewind(5 * minute)
    await world.time.advance(2 * interval)
    expect(idsAtTheService(world)).toEqual(ids)
    expect(keptIds(nodeOf(world)).sort()).toEqual([...ids].sort())
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('is written over at once, though it holds the claim of a call that is long since answered', async () => {
    const world = new World({ seed: 1, usernames: ['agent0'], configuration })
    const node = world.start()
    while (world.store.record('agent0')?.claim === undefined) await world.time.advance(1)
    const claimedMs = world.time.nowMs
    await world.time.advance(minute)
    const [id] = idsAtTheService(world)
    world.store.rewind(world.time.nowMs - claimedMs)
    expect(world.store.record('agent0')?.claim).toBeDefined()
    const begunMs = world.time.nowMs
    const report = await world.settled(node, (keeper) => keeper.sweep())
    expect(world.time.nowMs - begunMs).toBeLessThanOrEqual(10 * second)
    expect(report).toMatchObject({ active: 1, failed: [] })
    expect(keptIds(node)).toEqual([id])
  })

  test('leaves one subscription for each user, and the right ids, to a new process', async () => {
    const world = await restoredDump()
    await world.stop(nodeOf(world))
    world.store.rewind(5 * minute)
    const node = world.start()
    await world.time.advance(minute)
    // Without parameters nothing goes by id: a delivery tells that the recorded one is wrong.
    if (!hasParameters) {
      for (const name of agents(4)) world.callback(name)
      await world.time.advance(5 * minute)
      for (const { subscriptionId } of strays(node))
        world.service.unsubscribe(subscriptionId, 'somebody else')
      await world.settled(node, (keeper) => keeper.sweep())
    }
    await world.time.advance(2 * interval)
    for (const name of agents(4)) expect(world.service.activeFor(name)).toHaveLength(1)
    expect(keptIds(node).sort()).toEqual(idsAtTheService(world).sort())
    expect(problemsAtTheService(world)).toEqual([])
  })
})

function strays({ keeper, process }: Node): { subscriptionId: number }[] {
  const { problems } = process.run(() => keeper.status())
  return problems.flatMap(({ subscriptionId }) => (subscriptionId === undefined ? [] : [{ subscriptionId }]))
}

test.each([100, 500, 2_000])(
  'a replica that lacks the last %i ms, promoted in the middle of a sweep, ends in one subscription for each user',
  async (lackingMs) => {
    const world = await settledWorld({ users: 60, processes: 2 })
    world.start()
    await world.time.advance(minute)
    world.end(agents(60))
    const sweeping = world.settled(nodeOf(world), (keeper) => keeper.sweep())
    await world.time.advance(second)
    world.store.mode = 'failing'
    await world.time.advance(3 * second)
    world.store.rewind(3 * second + lackingMs)
    world.store.mode = 'working'
    await sweeping
    await world.time.advance(2 * interval)
    for (const name of agents(60)) expect(world.service.activeFor(name)).toHaveLength(1)
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
  },
)

describe('a user whom a new process meets anew in an emptied store, after an end', () => {
  /** @param outcome - of the new process's create, whose claim stands in the store */
  async function emptied(outcome: NetworkOutcome): Promise<{ world: World; knowing: Node; other: Node }> {
    const world = await settledWorld({ users: 1, processes: 2 })
    const knowing = nodeOf(world)
    world.end(agents(1))
    world.store.forget()
    world.nextOutcomes.push(outcome)
    const other = world.start()
    while (world.store.record('agent0')?.claim === undefined) await world.time.advance(1)
    return { world, knowing, other }
  }

  function expectOneGap({ gaps }: World, by: Node, cause: KeeperGap['cause'] = 'replaced'): void {
    expect(gaps.map(({ process, what }) => [process, what.cause])).toEqual([[by.process, cause]])
  }

  test('is in a gap, though the create takes so long that the process which knows of it meets its claim', async () => {
    const { world, knowing } = await emptied({ kind: 'slow', effectAfterMs: 100, answerAfterMs: 3_000 })
    await world.settled(knowing, (keeper) => keeper.sweep())
    await world.time.advance(interval)
    expectOneGap(world, knowing)
    expect(gapsNotReported(world)).toEqual([])
  })

  test('is in a gap, though the create is refused, and the process which knows of it makes its own', async () => {
    const { world, knowing, other } = await emptied({ kind: 'status', status: 422 })
    while (world.store.record('agent0')?.claim !== undefined) await world.time.advance(1)
    world.kill(other)
    await world.settled(knowing, (keeper) => keeper.sweep())
    expectOneGap(world, knowing, 'ended')
    expect(gapsNotReported(world)).toEqual([])
  })

  test('is in one gap, though the process which knows of it takes over an unknown outcome', async () => {
    const { world, knowing, other } = await emptied({
      kind: 'slow',
      effectAfterMs: 100,
      answerAfterMs: 3_000,
    })
    await world.time.advance(second)
    world.kill(other)
    await world.settled(knowing, (keeper) => keeper.sweep())
    await world.time.advance(interval)
    expectOneGap(world, knowing)
    expect(gapsNotReported(world)).toEqual([])
  })
})

test('a process that remembers a user ends what a new process, which found no record, did not know of', async () => {
  const world = await settledWorld({ users: 2 })
  world.wantNoLonger('agent1')
  world.store.forgetRecord('agent1')
  const other = world.start()
  await world.settled(other, (keeper) => keeper.sweep())
  expect(world.store.record('agent1')).toMatchObject({ isRemoved: true })
  expect(world.service.activeFor('agent1')).toHaveLength(1)
  await world.time.advance(1.1 * interval)
  expect(problemsAtTheService(world)).toEqual([])
  expect(world.gaps).toEqual([])
  expect(world.store.record('agent1')).toMatchObject({ isRemoved: true, subscriptions: [] })
  expect(world.store.hasMember('agent1')).toBe(false)
})

test('a user who comes back, and of whom another process knew nothing, keeps what is there without a gap', async () => {
  const world = await settledWorld({ users: 2 })
  const before = idsAtTheService(world)
  const node = nodeOf(world)
  world.wantNoLonger('agent1')
  world.store.forgetRecord('agent1')
  const other = world.start()
  await world.settled(other, (keeper) => keeper.sweep())
  world.want('agent1')
  await world.settled(node, (keeper) => keeper.sweep())
  await world.time.advance(1.1 * interval)
  expect(problemsAtTheService(world)).toEqual([])
  expect(idsAtTheService(world)).toEqual(before)
  expect(world.gaps).toEqual([])
})

test('a user who was removed meanwhile, and comes back, is no sign of a receiver that fails', async () => {
  const world = await settledWorld({ users: 2 })
  const node = nodeOf(world)
  node.process.suspend()
  world.store.forgetRecord('agent1')
  const other = world.start()
  await world.settled(other, (keeper) => keeper.sweep())
  world.wantNoLonger('agent1')
  await world.settled(other, (keeper) => keeper.sweep())
  world.want('agent1')
  world.kill(other)
  node.process.resume()
  await world.settled(node, (keeper) => keeper.sweep())
  expect(problemsAtTheService(world)).toEqual([])
  expect(world.gaps.map(({ what }) => what.cause)).toEqual(['changed'])
  expect(codes(world)).not.toContain('RECEIVER_SUSPECTED')
})

test('what a new process did not know of is ended, even if the process that remembers it dies with its claim', async () => {
  const world = await settledWorld({ users: 2 })
  const node = nodeOf(world)
  world.wantNoLonger('agent1')
  const rostersRead = world.rostersRead.length
  node.process.run(() => {
    node.keeper.sweep().catch(() => {})
  })
  while (world.rostersRead.length === rostersRead) await world.time.advance(1)
  node.process.suspend()
  world.store.forgetRecord('agent1')
  const other = world.start()
  await world.settled(other, (keeper) => keeper.sweep())
  world.kill(other)
  node.process.resume()
  while (world.store.record('agent1')?.claim?.call !== 'unsubscribe') await world.time.advance(1)
  world.kill(node)
  world.start()
  await world.time.advance(5 * minute)
  expect(problemsAtTheService(world)).toEqual([])
  expect(world.store.isKeptForGood('agent1')).toBe(false)
})

test('what was ended to make room is in a gap, though another process on an emptied store fills the room', async () => {
  const world = await settledWorld({ users: 1 })
  world.configure({ ...defaultConfiguration, notificationTypes: ['behavioral', 'conversation-ai'] })
  const node = world.start()
  while (world.service.activeFor('agent0').some(isKept)) await world.time.advance(1)
  node.process.suspend()
  world.store.forget()
  await world.settled(world.start(), (keeper) => keeper.sweep())
  node.process.resume()
  await world.time.advance(1.1 * interval)
  expect(world.gaps.map(({ process, what }) => [process, what.cause])).toEqual([[node.process, 'replaced']])
  expect(gapsNotReported(world)).toEqual([])
  expect(problemsAtTheService(world)).toEqual([])
})

test('an id that a process remembers from before two losses is proven by id before it is believed', async () => {
  const world = await settledWorld({ users: 3 })
  const rememberer = nodeOf(world)
  rememberer.process.suspend()
  world.store.forget()
  const fresh = world.start()
  await world.settled(fresh, (keeper) => keeper.sweep())
  world.kill(fresh)
  world.store.forget()
  world.end(['agent0'])
  rememberer.process.resume()
  await world.settled(rememberer, (keeper) => keeper.sweep())
  expect(keptIds(rememberer)).toEqual(expect.arrayContaining(idsAtTheService(world)))
  expect(problemsAtTheService(world)).toEqual([])
})

test('a lost configuration is announced again by the process that runs, and not by an older one', async () => {
  const world = await settledWorld({ users: 2 })
  const older = nodeOf(world)
  world.configure({ ...defaultConfiguration, parameters: { token: world.newSecret() } })
  const newer = world.start()
  await world.time.advance(2 * minute)
  expect(troublesOf(older)).toEqual(['SUPERSEDED'])
  world.store.forget()
  await world.time.advance(5 * minute)
  expect(troublesOf(older)).toEqual(['SUPERSEDED'])
  expect(troublesOf(newer)).toEqual([])
  expect(problemsAtTheService(world)).toEqual([])
})

describe('a loss is reported once, and resolved in the same moment', () => {
  const once = ['STORE', 'STORE resolved']

  test('though it shows at every record', async () => {
    const world = await settledWorld({ users: 20 })
    world.store.forget()
    await world.time.advance(interval)
    expect(codes(world)).toEqual(once)
  })

  test('though deliveries put off the look at the records', async () => {
    const world = await settledWorld({ users: 3 })
    world.store.forget()
    await world.time.advance(7 * minute)
    for (const name of agents(3)) world.callback(name)
    await world.time.advance(2 * interval)
    for (const name of agents(3)) expect(world.store.record(name)).toBeDefined()
    expect(codes(world)).toEqual(once)
  })

  test('and the next one, a few minutes later, once more', async () => {
    const world = await settledWorld({ users: 3 })
    world.store.forget()
    await world.time.advance(2 * minute)
    world.store.forget()
    await world.time.advance(2 * interval)
    expect(codes(world)).toEqual([...once, ...once])
  })
})
