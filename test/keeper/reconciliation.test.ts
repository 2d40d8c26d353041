/** What becomes of a user in the smallest story that shows it, on the model of the service. */
import { describe, expect, test } from 'vitest'
import type { SentRequest } from './model/client.js'
import { problemsAtTheService } from './model/rules/final-state.js'
import { gapsNotReported } from './model/rules/gaps.js'
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
import { defaultConfiguration, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute

function told({ kind, username, effect }: SentRequest): string {
  return `${kind} ${username}: ${effect ?? 'no effect'}`
}

/** What was sent since a number of requests. */
function sentSince(world: World, count: number): string[] {
  return world.requests.slice(count).map(told)
}

describe('one subscription for each user', () => {
  test('so that adding a user is one call, and removing one is one call', async () => {
    const world = await settledWorld({ users: 5 })
    const joint = world.service.active().filter(({ usernames }) => usernames.length !== 1)
    expect(joint).toEqual([])
    const before = world.requests.length
    world.want('newcomer')
    world.wantNoLonger('agent1')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const changes = sentSince(world, before).filter(
      (line) => !line.endsWith('409') && !line.startsWith('update'),
    )
    expect(changes.sort()).toEqual(['create newcomer: 201', 'unsubscribe agent1: 204'])
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe('a probe', () => {
  test('is a plain create, and every fourth is an update by the recorded id', async () => {
    const world = await settledWorld({ users: 1 })
    const before = world.requests.length
    await world.time.advance(8 * interval)
    const kinds = world.requests.slice(before).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'update')).toHaveLength(2)
    expect(kinds.filter((kind) => kind === 'create')).toHaveLength(6)
  })

  test('is a plain create, which restores in one call, once others have ended', async () => {
    const world = await settledWorld({ users: 20 })
    // The next probe goes by id.
    await world.time.advance(2 * interval)
    const before = world.requests.length
    world.end(agents(20))
    await world.time.advance(interval + 2 * minute)
    const sent = sentSince(world, before)
    expect(sent.filter((line) => line.endsWith('201'))).toHaveLength(20)
    // The first end may be found by id.
    expect(sent.filter((line) => line.endsWith('404')).length).toBeLessThanOrEqual(1)
  })

  test('of a keeper without parameters is a plain create always', async () => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const world = await settledWorld({ users: 1, configuration })
    await world.time.advance(8 * interval)
    expect(new Set(world.requests.map(({ kind }) => kind))).toEqual(new Set(['create']))
  })

  test('is saved by a delivery', async () => {
    const world = await settledWorld({ users: 1 })
    const before = world.requests.length
    const callBack = () => {
      world.callback('agent0')
      world.time.schedule(5 * minute, callBack)
    }
    callBack()
    await world.time.advance(2 * hour)
    expect(world.requests.length - before).toBeLessThanOrEqual(2)
  })
})

describe('the first meeting with a user', () => {
  test('replaces an identical subscription, whose id is not known', async () => {
    const world = new World({ seed: 3, usernames: ['agent0'] })
    const { notificationTypes, callbackUrl } = world.configuration
    const request = {
      notificationTypes,
      callbackUrl,
      usernames: ['agent0'],
      recreateIfExists: false,
      parameters: {},
    }
    world.service.create(request, 'keeper')
    world.start()
    await world.time.advance(minute)
    expect(world.requests.map(told)).toEqual(['create agent0: 409', 'recreate agent0: 201'])
    expect(world.gaps).toEqual([])
  })

  test('leaves it and reports a conflict where that is asked for', async () => {
    const world = new World({ seed: 3, usernames: ['agent0'], keeper: { existing: 'report' } })
    world.subscribeSomebodyElse(['agent0'])
    world.start()
    await world.time.advance(minute)
    expect(world.requests.map(told)).toEqual(['create agent0: 409'])
    expect(codes(world)).toEqual(['CONFLICT'])
  })

  test('reports a joint subscription that stands in the way of everybody in it', async () => {
    const world = new World({ seed: 3, usernames: agents(4) })
    world.subscribeSomebodyElse(agents(4))
    world.start()
    await world.time.advance(minute)
    expect(world.problems.at(-1)?.what.usernames).toHaveLength(4)
    expect(new Set(codes(world))).toEqual(new Set(['CONFLICT']))
  })
})

describe('a create without an answer', () => {
  test('is settled by a recreate, and not before it can no longer take effect', async () => {
    const world = new World({ seed: 5, usernames: ['agent0'] })
    world.nextOutcomes.push({ kind: 'silent', effectAfterMs: 25_000 })
    world.start()
    await world.time.advance(10 * minute)
    const recreate = world.requests.find(({ kind }) => kind === 'recreate')
    const [first] = world.requests
    expect(first?.effect).toBe(201)
    expect((recreate?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(150 * second)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('leaves the replacement of the day for what somebody else puts in the way', async () => {
    const world = new World({ seed: 5, usernames: ['agent0'] })
    world.nextOutcomes.push({ kind: 'silent', effectAfterMs: 25_000 })
    world.start()
    await world.time.advance(10 * minute)
    const [own] = world.service.activeFor('agent0')
    world.service.unsubscribe(own?.id ?? 0, 'somebody else')
    world.subscribeSomebodyElse(['agent0'])
    await world.time.advance(2 * hour)
    expect(world.requests.filter(({ kind }) => kind === 'recreate')).toHaveLength(2)
    expect(codes(world)).not.toContain('CONFLICT')
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('is not settled by a delivery that arrives while it is on its way', async () => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const world = await settledWorld({ users: 1, configuration })
    const node = nodeOf(world)
    world.nextOutcomes.push({ kind: 'silent', effectAfterMs: 35 * second })
    node.process.receive(0, () => void node.keeper.sweep())
    await world.time.advance(10 * second)
    world.callback('agent0')
    await world.time.advance(second)
    node.process.run(() => node.keeper.status())
    await world.time.advance(22 * second)
    world.end(['agent0'])
    await world.time.advance(interval + 3 * minute)
    const [real] = world.service.activeFor('agent0')
    expect(node.process.run(() => node.keeper.subscription('agent0'))?.subscriptionId).toBe(real?.id)
    expect(world.gaps).toHaveLength(1)
  })

  test('of a user who is removed meanwhile is found and ended, even if it takes effect late', async () => {
    const world = await settledWorld({ users: 2 })
    const node = nodeOf(world)
    const busy = { kind: 'status', status: 503 } as const
    world.want('newcomer')
    world.nextOutcomes.push(
      { kind: 'answered' },
      { kind: 'answered' },
      { kind: 'silent', effectAfterMs: 149_000 },
    )
    node.process.receive(0, () => void node.keeper.sweep())
    await world.time.advance(30 * second)
    world.everyOutcome = () => busy
    await world.time.advance(10 * second)
    world.everyOutcome = undefined
    world.wantNoLonger('newcomer')
    node.process.receive(0, () => void node.keeper.sweep())
    await world.time.advance(30 * second)
    expect(world.service.activeFor('newcomer')).toEqual([])
    await world.time.advance(interval)
    const made = world.service.subscriptions.filter(({ usernames }) => usernames.includes('newcomer'))
    expect(made).not.toEqual([])
    expect(world.service.activeFor('newcomer')).toEqual([])
  })
})

describe('a user who is wanted again', () => {
  const { parameters: _, ...configuration } = defaultConfiguration

  /** Removed by a process that cannot know whether the one before it had a create under way. */
  async function removedAfterCrash(): Promise<World> {
    const world = await settledWorld({ users: 2, configuration })
    world.kill(nodeOf(world))
    world.wantNoLonger('agent1')
    world.start()
    await world.time.advance(90 * second)
    expect(world.requests.map(told)).toContain('unsubscribe agent1: 204')
    return world
  }

  test('and has been read on the roster has his gaps reported', async () => {
    const world = await removedAfterCrash()
    world.want('agent1')
    await world.time.advance(interval + minute)
    const [subscription] = world.service.activeFor('agent1')
    world.service.unsubscribe(subscription?.id ?? 0, 'keeper')
    await world.time.advance(interval + minute)
    expect(world.gaps.map(({ what }) => [what.username, what.cause])).toEqual([['agent1', 'ended']])
    expect(gapsNotReported(world)).toEqual([])
    world.gaps.length = 0
    expect(gapsNotReported(world)).toHaveLength(1)
  })
})

describe('one problem', () => {
  test('is one report when it begins and one when it resolved', async () => {
    const world = await settledWorld({ users: 20 })
    world.everyOutcome = () => ({ kind: 'status', status: 503 })
    await world.time.advance(hour)
    world.everyOutcome = undefined
    await world.time.advance(interval)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE resolved'])
  })

  test('of one user whom the service refuses is his alone', async () => {
    const world = await settledWorld({ users: 20 })
    world.refused.add('agent3')
    await world.time.advance(2 * interval)
    const { keeper, process } = nodeOf(world)
    expect(process.run(() => keeper.status()).counts).toEqual({
      active: 19,
      unproven: 0,
      conflict: 0,
      failing: 1,
    })
    expect(codes(world)).toEqual([])
    world.refused.clear()
    await world.time.advance(interval)
    expect(process.run(() => keeper.status()).counts).toMatchObject({ active: 20, failing: 0 })
  })

  test('of a user who ends again at once is that the next restore has to wait, and for how long', async () => {
    const world = await settledWorld({ users: 1 })
    const sweep = () => world.settled(nodeOf(world), (keeper) => keeper.sweep())
    world.end(['agent0'])
    expect((await sweep()).restored).toBe(1)
    world.end(['agent0'])
    const [failure] = (await sweep()).failed
    expect(String(failure?.error)).toMatch(
      /no delivery has come since: the next restore is tried in \d\d s\.$/,
    )
  })

  test('of credentials says so', async () => {
    const world = await settledWorld({ users: 20 })
    world.everyOutcome = () => ({ kind: 'no-token' })
    await world.time.advance(hour)
    expect(codes(world)).toEqual(['CREDENTIALS'])
  })
})

describe('a roster', () => {
  test('is read once when a keeper starts', async () => {
    const world = await settledWorld({ users: 2 })
    expect(world.rostersRead).toHaveLength(1)
  })

  for (const mode of ['empty', 'throwing', 'hanging', 'garbled', 'halved'] as const) {
    test(`that is ${mode} removes nobody and is reported`, async () => {
      const world = await settledWorld({ users: 20 })
      const before = world.requests.length
      world.rosterMode = mode
      await world.time.advance(3 * interval)
      expect(sentSince(world, before).filter((line) => line.startsWith('unsubscribe'))).toEqual([])
      expect(codes(world)).toEqual(['ROSTER'])
      world.rosterMode = 'working'
      await world.time.advance(interval + minute)
      expect(codes(world)).toEqual(['ROSTER', 'ROSTER resolved'])
      expect(problemsAtTheService(world)).toEqual([])
    })
  }

  test('that lacks most users removes them where that is allowed', async () => {
    const world = await settledWorld({ users: 20 })
    for (const name of agents(15)) world.wantNoLonger(name)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(world.service.active()).toHaveLength(20)
    const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep({ allowRemovals: true }))
    expect(report.removed).toBe(15)
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe('a new configuration', () => {
  const elsewhere = { ...defaultConfiguration, callbackUrl: 'https://app.example.com/elsewhere' }
  const otherTypes = { ...defaultConfiguration, notificationTypes: ['conversation-ai'] as const }
  const moreTypes = { ...defaultConfiguration, notificationTypes: ['behavioral', 'conversation-ai'] as const }
  const otherSecret = { ...defaultConfiguration, parameters: { token: 's3cret-9' } }
  const otherName = { ...defaultConfiguration, parameters: { tenant: 's3cret-9' } }

  test.each([
    ['of parameters is brought by updates', otherSecret, ['update']],
    ['of the callback URL creates first and ends then', elsewhere, ['create', 'unsubscribe']],
    ['of types that share none creates first and ends then', otherTypes, ['create', 'unsubscribe']],
    ['of types that overlap ends first and creates at once', moreTypes, ['unsubscribe', 'create']],
    ['without one of the parameters recreates', otherName, ['recreate']],
  ] as const)('%s', async (_, configuration, kinds) => {
    const world = await settledWorld({ users: 3 })
    await world.stop(nodeOf(world))
    const before = world.requests.length
    world.configuration = configuration
    world.start()
    await world.time.advance(5 * minute)
    const ofOne = world.requests.slice(before).filter(({ username }) => username === 'agent1')
    expect(ofOne.filter(({ effect }) => effect !== 409).map(({ kind }) => kind)).toEqual(kinds)
    expect(problemsAtTheService(world)).toEqual([])
    const isGap = kinds[0] === 'recreate' || kinds[0] === 'unsubscribe'
    expect(world.gaps.map(({ what }) => what.cause)).toEqual(isGap ? ['changed', 'changed', 'changed'] : [])
    expect(world.violations).toEqual([])
  })

  test('is no reason for a superseded process to report the new subscriptions as unknown', async () => {
    const world = await settledWorld({ users: 1 })
    const old = nodeOf(world)
    world.configuration = { ...world.configuration, callbackUrl: 'https://app.example.com/elsewhere' }
    world.start()
    await world.time.advance(3 * minute)
    const [subscription] = world.service.activeFor('agent0')
    old.process.run(() => old.keeper.observe({}, { subscriptionId: subscription?.id ?? 0 }))
    await world.time.advance(3 * minute)
    expect(codes(world)).toEqual(['SUPERSEDED'])
  })

  test('makes a process that runs an older one send nothing', async () => {
    const world = await settledWorld({ users: 3 })
    world.configuration = otherSecret
    world.start()
    await world.time.advance(5 * minute)
    expect(codes(world)).toContain('SUPERSEDED')
    expect(problemsAtTheService(world)).toEqual([])
    const before = world.requests.length
    await world.time.advance(4 * interval)
    expect(new Set(world.requests.slice(before).map(({ process }) => process.name))).toEqual(
      new Set(['process 2']),
    )
  })
})

describe('a process that slept', () => {
  test('and finds the store failing creates nothing for a user that another process has removed', async () => {
    const world = await settledWorld({ users: 2 })
    const { process } = nodeOf(world)
    world.start()
    process.suspend()
    world.wantNoLonger('agent0')
    await world.time.advance(interval)
    world.store.mode = 'hanging'
    process.resume()
    await world.time.advance(minute)
    world.store.mode = 'working'
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe('a delivery', () => {
  test('of an unknown subscription is reported after a minute, with its id, and nothing is ended', async () => {
    const world = await settledWorld({ users: 3 })
    world.observe(999, 0)
    await world.time.advance(55 * second)
    expect(codes(world)).toEqual([])
    await world.time.advance(2 * minute)
    const [problem] = world.problems
    expect(problem?.what).toMatchObject({ code: 'STRAY', subscriptionId: 999, resolved: false })
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toEqual([])
  })

  test('of an unknown subscription waits for a user whose create may have made it', async () => {
    const world = await settledWorld({ users: 3 })
    world.want('newcomer')
    world.nextOutcomes.push(
      { kind: 'answered' },
      { kind: 'answered' },
      { kind: 'answered' },
      { kind: 'silent' },
    )
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(40 * second)
    world.observe(999, 0)
    await world.time.advance(95 * second)
    expect(codes(world)).toEqual([])
    // Whatever that create has made is replaced by then: another one delivers again.
    await world.time.advance(2 * minute)
    world.observe(999, 0)
    await world.time.advance(2 * minute)
    expect(codes(world)).toEqual(['STRAY'])
  })

  test('of an unknown subscription is not called somebody else’s where a process without parameters has died', async () => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const world = await settledWorld({ users: 3, configuration })
    world.kill(nodeOf(world))
    world.start()
    await world.time.advance(5 * minute)
    world.observe(999, 0)
    await world.time.advance(2 * minute)
    expect(world.problems.map(({ what }) => what.message)).toEqual([
      expect.stringMatching(
        /may have made it all the same.*client\.unsubscribe\(999\)` and then `sweep\(\)`/,
      ),
    ])
  })

  test('of a subscription that another process has just created is not reported', async () => {
    const world = await settledWorld({ users: 3 })
    const second = world.start()
    await world.time.advance(minute)
    world.want('newcomer')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const [subscription] = world.service.activeFor('newcomer')
    second.process.receive(0, () => second.keeper.observe({}, { subscriptionId: subscription?.id ?? 0 }))
    await world.time.advance(5 * minute)
    expect(codes(world)).toEqual([])
  })
})

describe('clocks', () => {
  test('that stood still are followed by a look at everybody at once', async () => {
    const world = await settledWorld({ users: 3 })
    const { process } = nodeOf(world)
    process.suspend()
    await world.time.advance(2 * hour)
    world.end(agents(3))
    process.resume()
    await world.time.advance(minute)
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe('a rotation', () => {
  test('updates all, and says whose old secret can go', async () => {
    const world = await settledWorld({ users: 5 })
    world.end(['agent4'])
    const parameters = { token: world.newSecret() }
    world.configuration = { ...world.configuration, parameters }
    const report = await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
    expect([...report.confirmed].sort()).toEqual(agents(5))
    expect(report.pending).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('leaves everybody pending where a newer configuration is at work', async () => {
    const world = await settledWorld({ users: 2 })
    const [old] = world.nodes
    world.start({ ...world.configuration, callbackUrl: 'https://app.example.com/elsewhere' })
    await world.time.advance(3 * minute)
    const parameters = { token: world.newSecret() }
    const report = await world.settled(old ?? nodeOf(world), (keeper) =>
      keeper.rotateParameters({ parameters }),
    )
    expect(report.confirmed).toEqual([])
  })

  test('leaves pending whom the service refuses, and a later pass finishes them', async () => {
    const world = await settledWorld({ users: 5 })
    world.refused.add('agent2')
    const parameters = { token: world.newSecret() }
    world.configuration = { ...world.configuration, parameters }
    const report = await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
    expect(report.pending).toEqual(['agent2'])
    world.refused.clear()
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('waits for a sweep under way without trying due users over and over', async () => {
    const world = await settledWorld({ users: 1 })
    await world.time.advance(interval - minute - 5 * second)
    world.rosterMode = 'hanging'
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(second)
    const parameters = { token: world.newSecret() }
    world.configuration = { ...world.configuration, parameters }
    const report = await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
    expect(report.confirmed).toEqual(agents(1))
    expect(problemsAtTheService(world)).toEqual([])
  })
})
