/** One roster, several processes: each does the same work, and together they cost what one costs. */
import { describe, expect, test } from 'vitest'
import { answered } from './model/network-outcomes.js'
import { problemsAtTheService, recordsOfNobody } from './model/rules/final-state.js'
import { gapsNotReported } from './model/rules/gaps.js'
import { agents, minute, nodeOf, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import { defaultConfiguration, type Node, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute
const users = 20

/** Processes that are started one after the other, and have subscribed everybody. */
async function worldOf(
  processes: number,
  options: { readonly users?: number; readonly isStoreSynchronous?: boolean } = {},
): Promise<World> {
  const world = new World({ seed: 1, usernames: agents(options.users ?? users), processes, ...options })
  for (let count = 0; count < processes; count++) {
    world.start()
    await world.time.advance(20 * second)
  }
  await world.time.advance(2 * interval)
  expect(problemsAtTheService(world)).toEqual([])
  return world
}

function nodesOf({ nodes }: World): [Node, Node] {
  const [one, other] = nodes
  if (one === undefined || other === undefined) throw new Error('Two processes should be alive.')
  return [one, other]
}

describe.each([1, 2, 3])('%i processes', (processes) => {
  test('cost the service one request per user and interval', async () => {
    const world = await worldOf(processes)
    const before = world.requests.length
    await world.time.advance(5 * interval)
    const perUserAndInterval = (world.requests.length - before) / users / 5
    expect(perUserAndInterval).toBeGreaterThan(0.9)
    expect(perUserAndInterval).toBeLessThan(1.02)
    expect(world.gaps).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('cost the same after one of them has restored everybody: the others take over its proofs', async () => {
    const world = await worldOf(processes, { users: 5 })
    world.end(agents(5))
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    // What ended starts one more sweep, of those who were proven before.
    await world.time.advance(2 * minute)
    const before = world.requests.length
    await world.time.advance(2 * interval)
    expect(world.requests.length - before).toBeLessThanOrEqual(2 * 5)
    expect(problemsAtTheService(world)).toEqual([])
    for (const { keeper, process } of world.nodes) {
      expect(process.run(() => keeper.status()).counts).toMatchObject({ active: 5, unproven: 0 })
    }
  })

  test('cost nothing while deliveries arrive at any of them', async () => {
    const world = await worldOf(processes)
    const deliver = async (times: number) => {
      for (let time = 0; time < times; time++) {
        for (const name of agents(users)) world.callback(name)
        await world.time.advance(5 * minute)
      }
    }
    await deliver(6)
    const before = world.requests.length
    await deliver(12)
    expect(world.requests.length - before).toBe(0)
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe('each of two processes', () => {
  test('sweeps: everybody whose subscription ended is subscribed again, with a gap reported once', async () => {
    const world = await worldOf(2, { users: 4 })
    for (const node of nodesOf(world)) {
      world.end(agents(4))
      const report = await world.settled(node, (keeper) => keeper.sweep())
      expect(report).toMatchObject({ wanted: 4, active: 4, restored: 4, failed: [] })
      world.gaps.splice(0)
      await world.time.advance(interval)
      expect(world.gaps).toEqual([])
    }
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('subscribes whom its roster brings, and ends whom its roster lacks', async () => {
    const world = await worldOf(2, { users: 3 })
    const [, other] = nodesOf(world)
    world.want('newcomer')
    world.wantNoLonger('agent0')
    const report = await world.settled(other, (keeper) => keeper.sweep())
    expect(report).toMatchObject({ wanted: 3, active: 3, created: 1, removed: 1, failed: [] })
    await world.time.advance(2 * interval)
    expect(problemsAtTheService(world)).toEqual([])
    for (const { keeper, process } of world.nodes) {
      expect(process.run(() => keeper.status()).counts).toMatchObject({ active: 3, unproven: 0 })
    }
  })

  test('rotates: nobody is pending, and the other one goes on when it was called there, too', async () => {
    const world = await worldOf(2, { users: 5 })
    const parameters = { token: world.newSecret() }
    world.configure({ ...defaultConfiguration, parameters })
    for (const node of nodesOf(world)) {
      const report = await world.settled(node, (keeper) => keeper.rotateParameters({ parameters }))
      expect(report.pending).toEqual([])
      expect([...report.confirmed].sort()).toEqual(agents(5))
    }
    expect(problemsAtTheService(world)).toEqual([])
    for (const { keeper, process } of world.nodes) {
      expect(process.run(() => keeper.status()).problems).toEqual([])
    }
  })

  test('ends everything when the other one is stopped', async () => {
    for (const index of [0, 1]) {
      const world = await worldOf(2, { users: 5 })
      const nodes = nodesOf(world)
      await world.settled(nodes[1 - index] as Node, (keeper) => keeper.stop())
      const report = await world.settled(nodes[index] as Node, (keeper) => keeper.unsubscribeAll())
      expect(report).toMatchObject({ wanted: 0, removed: 5, failed: [] })
      expect(world.service.active()).toEqual([])
    }
  })
})

describe('a process that is killed', () => {
  /** While it subscribes everybody, at its n-th operation. */
  async function killedWhileItSubscribes(): Promise<World> {
    const world = new World({ seed: 3, usernames: agents(200) })
    const node = world.start()
    node.process.setFuse({ operations: 900, blows: 'after' })
    await world.time.advance(10 * second)
    expect(node.process.isDead).toBe(true)
    const { length } = world.service.active()
    expect(length).toBeGreaterThan(50)
    expect(length).toBeLessThan(200)
    return world
  }

  test('delays only the users whom it had claimed, `concurrency` at most, and those for two minutes', async () => {
    const world = await killedWhileItSubscribes()
    const next = world.start()
    await world.time.advance(30 * second)
    const missing = () =>
      agents(200).filter((name) => {
        const kept = next.process.run(() => next.keeper.subscription(name))
        return kept?.state !== 'active'
      })
    expect(missing().length).toBeLessThanOrEqual(8)
    await world.time.advance(2 * minute)
    expect(missing()).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('right after a create leaves a user whom the next process ends, if nobody wants the user any more', async () => {
    const world = await settledWorld({ users: 3 })
    const node = nodeOf(world)
    world.want('newcomer')
    node.process.run(() => {
      node.keeper.sweep().catch(() => {})
    })
    while (world.service.activeFor('newcomer').length === 0) await world.time.advance(1)
    world.kill(node)
    world.wantNoLonger('newcomer')
    world.start()
    await world.time.advance(5 * minute)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('just after it claimed a user who has left leaves no record for ever', async () => {
    for (let afterMs = 0; afterMs < 40; afterMs += 4) {
      const world = await settledWorld({ users: 2 })
      const node = nodeOf(world)
      world.wantNoLonger('agent1')
      node.process.run(() => {
        node.keeper.sweep().catch(() => {})
      })
      while (world.store.record('agent1')?.claim?.call !== 'forget') await world.time.advance(1)
      await world.time.advance(afterMs)
      world.kill(node)
      world.start()
      await world.time.advance(5 * minute)
      expect(recordsOfNobody(world), `killed ${afterMs} ms after its claim`).toEqual([])
    }
  })

  test('while it forgets a user who comes back leaves a name that the next process enters again', async () => {
    for (let afterMs = 0; afterMs < 40; afterMs += 4) {
      const world = await worldOf(2, { users: 2 })
      const [node, next] = nodesOf(world)
      const rosterAskedMs = () => world.rosterAskedMs.get(next.process)
      const askedMs = rosterAskedMs()
      while (rosterAskedMs() === askedMs) await world.time.advance(second)
      world.wantNoLonger('agent1')
      node.process.run(() => {
        node.keeper.sweep().catch(() => {})
      })
      while (world.store.record('agent1')?.claim?.call !== 'forget') await world.time.advance(1)
      world.want('agent1')
      await world.time.advance(afterMs)
      world.kill(node)
      while (world.service.activeFor('agent1').length === 0) await world.time.advance(second)
      expect(world.store.hasMember('agent1'), `killed ${afterMs} ms after its claim`).toBe(true)
    }
  })

  test('is made up for by a program that only sweeps', async () => {
    const world = await killedWhileItSubscribes()
    const startedMs = world.time.nowMs
    const program = world.start(world.configuration, false)
    const report = await world.settled(program, (keeper) => keeper.sweep())
    expect(report).toMatchObject({ wanted: 200, active: 200, failed: [] })
    expect(world.time.nowMs - startedMs).toBeLessThan(140 * second)
    expect(problemsAtTheService(world)).toEqual([])
  })
})

test('a name that another process has taken out since it was entered is subscribed by no older roster', async () => {
  const world = await worldOf(2, { users: 2 })
  const [other, node] = nodesOf(world)
  world.want('newcomer')
  node.process.run(() => {
    node.keeper.sweep().catch(() => {})
  })
  while (!world.store.hasMember('newcomer')) await world.time.advance(1)
  node.process.suspend()
  world.wantNoLonger('newcomer')
  await world.settled(other, (keeper) => keeper.sweep())
  node.process.resume()
  await world.time.advance(2 * minute)
  expect(world.requests.filter(({ username }) => username === 'newcomer')).toEqual([])
  expect(recordsOfNobody(world)).toEqual([])
  world.want('newcomer')
  await world.settled(node, (keeper) => keeper.sweep())
  expect(problemsAtTheService(world)).toEqual([])
})

test('a process that slept between question and answer of the roster subscribes nobody who was removed meanwhile', async () => {
  const world = await worldOf(2, { users: 2, isStoreSynchronous: true })
  const [node, sleeper] = nodesOf(world)
  const { keeper, process } = sleeper
  process.setFuse({ operations: 1, blows: 'after', happen: () => process.sleep() })
  process.run(() => {
    keeper.sweep().catch(() => {})
  })
  await world.time.advance(second)
  world.wantNoLonger('agent1')
  await world.settled(node, (keeper) => keeper.sweep())
  process.resume()
  await world.time.advance(minute)
  expect(world.requests.filter(({ kind, effect }) => kind === 'create' && effect === 201)).toHaveLength(2)
  expect(world.violations).toEqual([])
  expect(problemsAtTheService(world)).toEqual([])
})

test('three processes that begin in the same moment send one request for each user', async () => {
  const world = new World({ seed: 1, usernames: agents(users), processes: 3 })
  for (let count = 0; count < 3; count++) world.start()
  await world.time.advance(minute)
  expect(world.requests.map(({ username }) => username).sort()).toEqual(agents(users).sort())
  expect(world.violations).toEqual([])
})

test('a watch that begins after a sweep proves nobody a second time', async () => {
  const world = new World({ seed: 1, usernames: agents(20) })
  const node = world.start(world.configuration, false)
  await world.settled(node, (keeper) => keeper.sweep())
  const before = world.requests.length
  node.process.run(() => node.keeper.start())
  await world.time.advance(20 * second)
  expect(world.requests.length).toBe(before)
})

test('a process that starts beside another one proves each user once, by id, and then takes turns', async () => {
  const world = await worldOf(1, { users: 5 })
  const before = world.requests.length
  world.start()
  await world.time.advance(minute)
  expect(
    world.requests
      .slice(before)
      .map(({ kind, username }) => `${kind} ${username}`)
      .sort(),
  ).toEqual(agents(5).map((name) => `update ${name}`))
})

test('one that ends again and again starts no further sweep', async () => {
  const world = await settledWorld({ users: 30 })
  await world.time.advance(interval)
  const before = world.requests.length
  for (let times = 0; times < 20; times++) {
    world.end(['agent0'])
    await world.time.advance(3 * minute)
  }
  // An hour: four proofs of each user, one sweep, and the restores of the one. A sweep for each end would take 600.
  expect(world.requests.length - before).toBeLessThan(30 * 8)
  expect(gapsNotReported(world)).toEqual([])
})

test('a user that another process has removed is not subscribed again by a roster that was read before', async () => {
  const world = await worldOf(2, { users: 18 })
  const [one] = nodesOf(world)
  const before = world.requests.length
  for (const name of agents(9)) world.wantNoLonger(name)
  const report = await world.settled(one, (keeper) => keeper.sweep())
  expect(report).toMatchObject({ removed: 9, failed: [] })
  await world.time.advance(2 * interval)
  const gone = new Set<string | undefined>(agents(9))
  const sent = world.requests.slice(before).filter(({ username }) => gone.has(username))
  expect(sent.filter(({ kind }) => kind !== 'unsubscribe')).toEqual([])
})

test('a late delivery of a user whom another process has removed subscribes nobody', async () => {
  const world = await worldOf(2, { users: 1 })
  // Both enter the name, one subscribes the user, and the other one reads that.
  world.want('newcomer')
  const begunMs = world.time.nowMs
  for (const { keeper, process } of world.nodes) process.run(() => void keeper.sweep())
  await world.time.advance(minute + interval / 2)
  const [created] = world.requestsSince(begunMs).filter(({ username }) => username === 'newcomer')
  const isCreator = ({ process }: Node) => process === created?.process
  const [one, other] = nodesOf(world).sort((a, b) => Number(isCreator(b)) - Number(isCreator(a)))
  expect(other.keeper.subscription('newcomer')?.subscriptionId).toBe(created?.created)
  world.wantNoLonger('newcomer')
  const report = await world.settled(one, (keeper) => keeper.sweep())
  expect(report).toMatchObject({ removed: 1, failed: [] })
  const removedMs = world.time.nowMs
  other.process.run(() => other.keeper.observe({}, { subscriptionId: created?.created ?? 0 }))
  await world.time.advance(minute)
  const sent = world.requestsSince(removedMs).filter(({ username }) => username === 'newcomer')
  expect(sent).toEqual([])
})

test('a proof by a process whose clock is ahead puts off no proof of the others', async () => {
  const world = new World({ seed: 1, usernames: agents(5), processes: 2 })
  const ahead = world.start(world.configuration, false)
  ahead.process.jumpWallClock(180 * minute)
  await world.settled(ahead, (keeper) => keeper.sweep())
  world.start()
  await world.time.advance(2 * minute)
  await world.settled(ahead, (keeper) => keeper.sweep())
  world.kill(ahead)
  await world.time.advance(interval)
  world.end(agents(5))
  await world.time.advance(interval + 2 * minute)
  expect(problemsAtTheService(world)).toEqual([])
})

test('a restore by a process whose clock is ahead puts off the next restore no longer than one here', async () => {
  const world = new World({ seed: 1, usernames: agents(1), processes: 2 })
  const ahead = world.start(world.configuration, false)
  ahead.process.jumpWallClock(180 * minute)
  await world.settled(ahead, (keeper) => keeper.sweep())
  world.end(agents(1))
  await world.settled(ahead, (keeper) => keeper.sweep())
  world.kill(ahead)
  const heir = world.start()
  await world.time.advance(minute)
  world.end(agents(1))
  await world.time.advance(minute)
  await world.settled(heir, (keeper) => keeper.sweep())
  expect(problemsAtTheService(world)).toEqual([])
})

test.each([0, 5])(
  'a delivery %i minutes after another process has restored is proof in both',
  async (later) => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const keeper = { sweepIntervalMs: 2 * minute }
    const world = new World({ seed: 1, usernames: agents(1), processes: 2, configuration, keeper })
    world.start()
    world.start()
    await world.time.advance(minute)
    const [restoring, delivering] = nodesOf(world)
    delivering.process.suspend()
    for (let restore = 0; restore < 5; restore++) {
      world.end(agents(1))
      await world.time.advance(interval + 2 * minute)
    }
    world.end(agents(1))
    await world.settled(restoring, (each) => each.sweep())
    delivering.process.resume()
    const { subscriptionId = 0 } = restoring.keeper.subscription('agent0') ?? {}
    const known = () => delivering.process.run(() => delivering.keeper.subscription('agent0')?.subscriptionId)
    expect(known()).not.toBe(subscriptionId)
    await world.time.advance(later * minute)
    expect(known() === subscriptionId).toBe(later > 0)
    delivering.process.run(() => delivering.keeper.observe({}, { subscriptionId }))
    await world.time.advance(6 * minute)
    for (const { process, keeper } of nodesOf(world)) {
      const kept = process.run(() => keeper.subscription('agent0'))
      expect(kept).toMatchObject({ subscriptionId, state: 'active', lastDeliveryAt: expect.any(Number) })
    }
  },
)

test('a user whose claim was left standing is active again in a process that gets all deliveries of the user', async () => {
  const world = new World({ seed: 1, usernames: agents(1), processes: 2 })
  world.start()
  world.start()
  await world.time.advance(minute)
  const [losing, delivering] = nodesOf(world)
  world.want('newcomer')
  world.everyOutcome = () =>
    world.requests.at(-1)?.username === 'agent0' ? { kind: 'reset', effectAfterMs: undefined } : answered
  losing.process.run(() => void losing.keeper.sweep())
  await world.time.advance(90 * second)
  // The other one searches the store for this subscription, and comes across the claim that was left standing.
  const [made] = world.service.activeFor('newcomer')
  delivering.process.run(() => delivering.keeper.observe({}, { subscriptionId: made?.id ?? 0 }))
  await world.time.advance(2 * minute)
  const kept = () => delivering.process.run(() => delivering.keeper.subscription('agent0'))
  expect(kept()?.state).toBe('unproven')
  world.everyOutcome = undefined
  const { subscriptionId = 0 } = kept() ?? {}
  for (let passed = 0; passed <= (interval * 16) / 15; passed += minute) {
    delivering.process.run(() => delivering.keeper.observe({}, { subscriptionId }))
    await world.time.advance(minute)
  }
  expect(kept()).toMatchObject({ subscriptionId, state: 'active' })
})

test('a claim that was left behind is found by a process that gets all deliveries, and whose clock is a day behind', async () => {
  const world = await settledWorld({ users: 1 })
  const delivering = nodeOf(world)
  delivering.process.jumpWallClock(-86_400_000)
  world.nextOutcomes.push({ kind: 'silent', effectAfterMs: undefined })
  const crashing = world.start()
  while (world.store.record('agent0')?.claim === undefined) await world.time.advance(1)
  await world.time.advance(second)
  world.kill(crashing)
  for (let passed = 0; passed <= (interval * 16) / 15; passed += minute) {
    world.callback('agent0')
    await world.time.advance(minute)
  }
  await world.time.advance(2 * minute)
  expect(world.store.record('agent0')?.claim).toBeUndefined()
  expect(problemsAtTheService(world)).toEqual([])
})

test('a roster that fails in one process brings nobody back whom another process has removed', async () => {
  const world = await settledWorld({ users: 4 })
  const other = world.start()
  await world.time.advance(2 * minute)
  world.wantNoLonger('agent3')
  await world.settled(other, (keeper) => keeper.sweep())
  await world.stop(other)
  world.rosterMode = 'throwing'
  await world.time.advance(3 * interval)
  expect(problemsAtTheService(world)).toEqual([])
})
