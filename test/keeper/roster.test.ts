/** Who is wanted: the roster, its faults, and users who leave. */
import type { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { describe, expect, test } from 'vitest'
import { hour, minute, second, type World } from './convergence/world.js'
import {
  agents,
  nodeOf,
  problemCodes,
  settledWorld,
  statesOf,
  swept,
  tellStories,
  worldOf,
} from './stories.js'

tellStories()

const subscribedIn = ({ ids }: World) => Object.keys(ids).sort()

test('of many sweeps at once the first reads the roster, and all others share one reading', async () => {
  let readings = 0
  const wanted = agents(3)
  const usernames = async () => {
    readings++
    await new Promise((resolve) => setTimeout(resolve, 2 * second))
    return wanted
  }
  const world = worldOf({ users: 8, keeper: { usernames } })
  const node = world.start(undefined, false)
  const sweepForNew = (keeper: SubscriptionKeeper, username: string) => {
    wanted.push(username)
    return keeper.sweep()
  }
  const newcomers = agents(8).slice(3)
  const reports = await world.settled(node, (keeper) =>
    Promise.all([keeper.sweep(), ...newcomers.map((name) => sweepForNew(keeper, name))]),
  )
  expect(readings).toBe(2)
  for (const { failed } of reports) expect(failed).toEqual([])
  expect(subscribedIn(world)).toEqual(agents(8))
})

describe('a user who', () => {
  test('leaves the roster is unsubscribed within an interval, by one process of three', async () => {
    const world = await settledWorld({ users: 5, processes: 3 })
    world.wanted.delete('agent2')
    const leftAtMs = world.time.nowMs
    await world.time.advance(16 * minute)
    expect(subscribedIn(world)).toEqual(['agent0', 'agent1', 'agent3', 'agent4'])
    // The first unsubscribe of a process is verified.
    const requests = world.requestsSince(leftAtMs).filter((each) => each.endsWith(' agent2'))
    expect(requests.slice(-3)).toEqual(['unsubscribe agent2', 'create agent2', 'unsubscribe agent2'])
    expect(requests.filter((each) => each.startsWith('unsubscribe'))).toHaveLength(2)
    await world.time.advance(20 * minute)
    for (const node of world.nodes) expect(Object.keys(statesOf(node))).not.toContain('agent2')
    const texts = world.store.keys.map((key) => world.store.text(key) ?? '')
    expect(texts.filter((text) => text.includes('agent2'))).toEqual([])
  })

  test('comes, or comes back, is subscribed within an interval, once', async () => {
    const world = await settledWorld({ users: 5, processes: 3 })
    world.wanted.delete('agent0')
    await world.time.advance(16 * minute)
    for (const name of ['agent0', 'newcomer']) world.want(name)
    const cameAtMs = world.time.nowMs
    await world.time.advance(16 * minute)
    for (const name of ['agent0', 'newcomer']) {
      expect(subscribedIn(world)).toContain(name)
      const calls = world.requestsSince(cameAtMs).filter((each) => each.endsWith(` ${name}`))
      expect(calls[0]).toBe(`create ${name}`)
      expect(calls.length).toBeLessThanOrEqual(2)
    }
  })

  test('was removed by another process is subscribed again only if the roster still has the name', async () => {
    const world = await settledWorld({ users: 3 })
    await world.time.advance(7 * minute)
    // The user is due here before the roster is read again.
    const later = world.start()
    await world.time.advance(2 * minute)
    world.wanted.delete('agent0')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    nodeOf(world).process.kill()
    expect(Object.keys(statesOf(later))).toContain('agent0')
    const removedAtMs = world.time.nowMs
    await world.time.advance(10 * minute)
    expect(world.requestsSince(removedAtMs).filter((each) => each.endsWith('agent0'))).toEqual([])
    expect(Object.keys(statesOf(later))).not.toContain('agent0')
    expect(world.gaps).toEqual([])
    // The news makes the roster be read once, and not from now on.
    const readings = world.rosterAnswers.length
    await world.time.advance(10 * minute)
    expect(world.rosterAnswers.length - readings).toBeLessThanOrEqual(1)
  })
})

test('a user whom a process with an older roster removed comes back with a gap since the last proof', async () => {
  const world = await settledWorld({ users: 3, processes: 2 })
  world.oldRosters.set(nodeOf(world).process, agents(3).slice(1))
  await world.time.advance(16 * minute)
  world.oldRosters.clear()
  await world.time.advance(2 * minute)
  expect(subscribedIn(world)).toEqual(agents(3))
  const [gap] = world.gaps.map(({ what }) => what)
  expect(gap).toMatchObject({ username: 'agent0', cause: 'changed', lastProvenAt: expect.any(Number) })
})

test('a user whom another process adds while a roster is read does not look removed', async () => {
  const world = await settledWorld({ users: 2 })
  world.rosterMode = 'slow'
  world.start()
  await world.time.advance(second)
  world.rosterMode = 'working'
  world.want('newcomer')
  await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  await world.time.advance(minute)
  expect(world.requestsSince(0)).not.toContain('unsubscribe newcomer')
  expect(subscribedIn(world)).toContain('newcomer')
})

test.each([true, false])(
  'users who leave take no other name out of the index (compareAndSet: %s)',
  async (hasCompareAndSet) => {
    const keeper = { maxRequestsPerSecond: Number.POSITIVE_INFINITY, concurrency: 50 }
    const world = await settledWorld({ users: 300, hasCompareAndSet, keeper })
    for (const name of agents(100)) world.wanted.delete(name)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const shards = world.store.keys.filter((key) => key.includes(':members:'))
    const names = shards.flatMap((key) => JSON.parse(world.store.text(key) ?? ''))
    expect(names.sort()).toEqual(agents(300).slice(100).sort())
  },
)

test('a user that an old roster brings back stays listed: if that process dies, another one ends the subscription', async () => {
  // The sweep stands still before each operation that follows the removal of the record.
  for (let operations = 1; operations <= 3; operations++) {
    const world = await settledWorld({ users: 2 })
    const { process, keeper } = nodeOf(world)
    world.rosterMode = 'slow'
    // It has read the index, and waits for the roster.
    const late = world.start()
    await world.time.advance(second)
    world.rosterMode = 'working'
    world.wanted.delete('agent0')
    void process.run(() => keeper.sweep())
    while (!world.store.keys.some((key) => world.store.text(key) === '"gone"')) await world.time.advance(1)
    process.setFuse({ operations, blows: 'before', happen: () => process.suspend() })
    await world.time.advance(31 * second)
    process.resume()
    await world.time.advance(second)
    late.process.kill()
    await world.time.advance(32 * minute)
    expect([operations, ...subscribedIn(world)]).toEqual([operations, 'agent1'])
  }
})

test('a user who left leaves nothing in the store, wherever the process dies', async () => {
  for (let operations = 1; operations <= 12; operations++) {
    const world = await settledWorld({ users: 2 })
    const { process, keeper } = nodeOf(world)
    world.isUncertain = true
    world.wanted.delete('agent0')
    void process.run(() => keeper.sweep())
    while (!world.requestsSince(0).includes('unsubscribe agent0')) await world.time.advance(1)
    process.setFuse({ operations, blows: 'before', happen: () => process.kill() })
    await world.time.advance(minute)
    process.kill()
    world.start()
    await world.time.advance(32 * minute)
    const texts = world.store.keys.map((key) => world.store.text(key))
    expect([operations, ...texts.filter((text) => text?.includes('agent0'))]).toEqual([operations])
  }
})

describe('a roster that', () => {
  test.each(['empty', 'throwing', 'hanging', 'unreadable'] as const)(
    'is %s removes no user, and is reported until it works',
    async (mode) => {
      const world = await settledWorld({ users: 3 })
      world.rosterMode = mode
      await world.time.advance(20 * minute)
      expect(subscribedIn(world)).toEqual(agents(3))
      expect(problemCodes(nodeOf(world))).toEqual(['ROSTER'])
      const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
      expect(report).toMatchObject({ wanted: 3, active: 3, removed: 0 })
      world.rosterMode = 'working'
      await world.time.advance(16 * minute)
      expect(problemCodes(nodeOf(world))).toEqual([])
    },
  )

  test.each([
    ['nothing', () => undefined, 'it is undefined, and no list'],
    ['a list with holes', () => new Array<string>(3), 'it has undefined, and not only names'],
    ['a list of objects', () => [{ name: 'agent0' }], 'it has a value of type object, and not only names'],
    ['a reason that is no text', () => Promise.reject(Object.create(null)), 'no message'],
    ['an error without a message', () => Promise.reject(Object.assign(new Error(), { code: 'E' })), ': E.'],
    [
      'a failed fetch',
      () => Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })),
      'fetch failed (connect ECONNREFUSED)',
    ],
  ])('answers %s is not believed, and the problem says so', async (_what, wrong, shown) => {
    let usernames: () => unknown = () => agents(2)
    const asked = (() => usernames()) as () => string[]
    const world = await settledWorld({ users: 2, keeper: { usernames: asked } })
    usernames = () => []
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    usernames = wrong
    const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const message = expect.stringContaining(shown)
    expect(report).toMatchObject({ active: 2, removed: 0, problems: [{ code: 'ROSTER', message }] })
    expect(report.problems).toHaveLength(1)
  })

  test('lacks more than half of more than ten users changes nothing, unless maxRemovedShare is 1', async () => {
    const world = await settledWorld({ users: 12 })
    for (const name of agents(12).slice(5)) world.wanted.delete(name)
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 12; count++) world.want(`wrong${round}-${count}`)
      const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
      expect(report).toMatchObject({ wanted: 12, active: 12, removed: 0, problems: [{ code: 'ROSTER' }] })
    }
    for (const name of [...world.wanted.keys()]) if (name.startsWith('wrong')) world.wanted.delete(name)
    nodeOf(world).process.kill()
    Object.assign(world.options, { keeper: { maxRemovedShare: 1 } })
    const { report } = await swept(world)
    expect(report).toMatchObject({ wanted: 5, active: 5, removed: 7, problems: [] })
  })

  test('shrinks step by step is compared with the largest of the last day', async () => {
    const world = await settledWorld({ users: 20, keeper: { sweepIntervalMs: hour } })
    for (const size of [12, 7]) {
      for (const name of agents(20).slice(size)) world.wanted.delete(name)
      await world.time.advance(70 * minute)
    }
    expect(problemCodes(nodeOf(world))).toEqual(['ROSTER'])
    expect(subscribedIn(world)).toHaveLength(12)
    await world.time.advance(26 * hour)
    expect(subscribedIn(world)).toHaveLength(7)
  })

  test.each([
    ['are', false],
    ['cannot be', true],
  ])(
    'changes shifts, as large as before, is believed, where users who left %s unsubscribed',
    async (_what, isWrong) => {
      const world = await settledWorld({ users: 20 })
      world.hasWrongRoutes = isWrong
      for (let hours = 0; hours < 12; hours++) {
        for (let count = 0; count < 4; count++) {
          world.wanted.delete([...world.wanted.keys()][0] ?? '')
          world.want(`shift${hours}-${count}`)
        }
        await world.time.advance(hour)
      }
      expect(new Set(world.problems.map(({ what }) => what.code))).toEqual(new Set(isWrong ? ['ROUTES'] : []))
      expect(subscribedIn(world)).toEqual(expect.arrayContaining([...world.wanted.keys()]))
      expect(subscribedIn(world).length > 20).toBe(isWrong)
    },
  )

  test('fails is asked again after 5 s, 10 s and so on, up to the interval, and anew after a success', async () => {
    const asked: number[] = []
    const usernames = () => {
      asked.push(world.time.nowMs)
      return [1, 5].includes(asked.length) ? agents(2) : Promise.reject(new Error('no database'))
    }
    const world = worldOf({ users: 2, keeper: { usernames } })
    world.start()
    await world.time.advance(100 * minute)
    const waits = asked.slice(1).map((ms, index) => Math.round((ms - (asked[index] ?? 0)) / second / 5) * 5)
    expect(waits.slice(0, 14)).toEqual([900, 5, 10, 20, 900, 5, 10, 20, 40, 80, 160, 320, 640, 900])
  })
})

test('a roster that could not be read because of the store is read as soon as the store works', async () => {
  const world = await settledWorld({ users: 2 })
  world.want('newcomer')
  await world.time.advance(880 * second - world.time.nowMs)
  // No user is due, so that only the reading itself meets the fault.
  for (const name of agents(2)) world.callback(name)
  await world.time.advance(20.5 * second)
  world.store.mode = 'failing'
  await world.time.advance(20 * second)
  world.store.mode = 'working'
  await world.time.advance(20 * second)
  expect(subscribedIn(world)).toContain('newcomer')
})

test.each(['empty', 'throwing'] as const)(
  'while the roster is %s, a name without a record is not subscribed',
  async (mode) => {
    const world = await settledWorld({ users: 1 })
    nodeOf(world).process.kill()
    for (let shard = 0; shard < 8; shard++) {
      const key = `coaching:members:${shard}`
      world.store.replace(key, JSON.stringify([`left${shard}`, 'agent0']))
    }
    world.rosterMode = mode
    const node = world.start()
    await world.time.advance(20 * minute)
    expect(subscribedIn(world)).toEqual(['agent0'])
    expect(statesOf(node)).toEqual({ agent0: 'active' })
    world.rosterMode = 'working'
    world.want('left7')
    await world.time.advance(20 * minute)
    expect(subscribedIn(world)).toEqual(['agent0', 'left7'])
  },
)
