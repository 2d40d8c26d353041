/** Each rule of the keeper (docs/keeper.md) in the smallest story that shows it, on the model of the service. */
import { describe, expect, test } from 'vitest'
import type { SentRequest } from './model/client.js'
import type { Fate } from './model/fates.js'
import { gapsNotReported } from './model/gaps.js'
import { problemsAtTheService } from './model/invariants.js'
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

  test('of a keeper without parameters is a plain create always', async () => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const world = await settledWorld({ users: 1, configuration })
    await world.time.advance(8 * interval)
    expect(new Set(world.requests.map(({ kind }) => kind))).toEqual(new Set(['create']))
  })

  test('that is answered 404 and then 409 tells of a conflict, and replaces nothing', async () => {
    const world = await settledWorld({ users: 3 })
    world.subscribeSomebodyElse(['agent1'])
    await world.time.advance(5 * interval)
    expect(codes(world)).toContain('CONFLICT')
    const conflict = world.problems.find(({ what }) => what.code === 'CONFLICT')
    expect(conflict?.what.usernames).toEqual(['agent1'])
    const { keeper, process } = nodeOf(world)
    expect(process.run(() => keeper.subscription('agent1'))?.state).toBe('conflict')
    expect(process.run(() => keeper.status()).counts).toMatchObject({ active: 2, conflict: 1 })
    world.unsubscribeSomebodyElse()
    await world.time.advance(interval + minute)
    expect(codes(world)).toContain('CONFLICT is over')
    expect(problemsAtTheService(world)).toEqual([])
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

describe('a store that fails', () => {
  for (const mode of ['failing', 'hanging', 'swallowing'] as const) {
    test(`(${mode}) keeps recorded users subscribed, and removes and replaces nobody`, async () => {
      const world = await settledWorld({ users: 4 })
      world.store.mode = mode
      await world.time.advance(minute)
      const before = world.requests.length
      world.end(['agent2'])
      world.wantNoLonger('agent3')
      world.want('newcomer')
      await world.time.advance(2 * interval)
      expect(sentSince(world, before)).toContain('create agent2: 201')
      expect(
        sentSince(world, before).filter((line) => /^(recreate|unsubscribe)|newcomer/.test(line)),
      ).toEqual([])
      expect(codes(world)).toContain('STORE')
      world.store.mode = 'working'
      await world.time.advance(interval + minute)
      expect(codes(world)).toContain('STORE is over')
      expect(problemsAtTheService(world)).toEqual([])
      expect(world.violations).toEqual([])
    })
  }

  test('is the reason that a pass gives for whom it could not subscribe', async () => {
    const world = await settledWorld({ users: 2 })
    const { keeper, process } = nodeOf(world)
    world.store.mode = 'failing'
    world.want('newcomer')
    const sweeping = process.run(() => keeper.sweep())
    await world.time.advance(minute)
    const { failed } = await sweeping
    expect(failed.map(({ username, error }) => [username, (error as Error).message])).toEqual([
      ['newcomer', expect.stringMatching(/^The store fails: .*nobody new is subscribed/)],
    ])
  })

  test('and loses all while a pass is under way is written again by the process that remembers', async () => {
    const world = await settledWorld({ users: 4 })
    const { keeper, process } = nodeOf(world)
    world.end(['agent0'])
    process.receive(0, () => void keeper.sweep())
    await world.time.advance(25)
    world.store.forget()
    await world.time.advance(2 * minute)
    expect(process.run(() => keeper.status()).counts).toMatchObject({ active: 4 })
    expect(world.gaps.map(({ what }) => what.username)).toEqual(['agent0'])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('and has lost all is written again by the process at work, and not taken over empty by the one that stands by', async () => {
    const world = await settledWorld({ users: 4 })
    const ids = world.service.active().map(({ id }) => id)
    world.start()
    await world.time.advance(20 * second)
    world.store.forget()
    await world.time.advance(2 * interval)
    expect(world.service.active().map(({ id }) => id)).toEqual(ids)
    const { keeper, process } = nodeOf(world)
    expect(process.run(() => keeper.status()).counts).toMatchObject({ active: 4 })
  })

  test('and has lost all is written again whole by a process that once found less in it', async () => {
    const world = await settledWorld({ users: 60 })
    await world.stop(nodeOf(world))
    world.start()
    await world.time.advance(20 * second)
    for (let index = 60; index < 120; index++) world.want(`agent${index}`)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const ids = world.service.active().map(({ id }) => id)
    world.store.forget()
    await world.time.advance(2 * minute)
    world.kill(nodeOf(world))
    world.start()
    await world.time.advance(interval + minute)
    expect(world.service.active().map(({ id }) => id)).toEqual(ids)
    expect(world.violations).toEqual([])
  })

  test('and loses all with the process at work leaves the gaps to be told by one that stood by', async () => {
    const world = await settledWorld({ users: 4 })
    world.start()
    await world.time.advance(20 * second)
    world.end(['agent0'])
    world.kill(nodeOf(world))
    world.forget()
    await world.time.advance(interval + minute)
    expect(gapsNotReported(world)).toEqual([])
    expect(world.gaps.map(({ what }) => what.username)).toContain('agent0')
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('and loses all twice lets the process at work learn what another one made in between', async () => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const world = await settledWorld({ users: 2, configuration })
    world.forget()
    world.start()
    await world.time.advance(second)
    world.forget()
    await world.time.advance(interval + minute)
    for (const { usernames, id } of world.service.active()) {
      const known = nodeOf(world).process.run(() => nodeOf(world).keeper.subscription(usernames[0] ?? ''))
      if (known !== undefined) expect(known.subscriptionId).toBe(id)
    }
    expect(world.gaps.map(({ what }) => what.username).sort()).toEqual(['agent0', 'agent1'])
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('and has lost all is written again by a process that stops', async () => {
    const world = await settledWorld({ users: 4 })
    const ids = world.service.active().map(({ id }) => id)
    world.store.forget()
    await world.stop(nodeOf(world))
    world.start()
    await world.time.advance(interval + minute)
    expect(world.service.active().map(({ id }) => id)).toEqual(ids)
  })

  test('and has lost all is written again by the process that remembers', async () => {
    const world = await settledWorld({ users: 4 })
    const ids = world.service.active().map(({ id }) => id)
    world.store.forget()
    await world.time.advance(2 * minute)
    world.kill(nodeOf(world))
    world.start()
    await world.time.advance(interval + minute)
    expect(world.service.active().map(({ id }) => id)).toEqual(ids)
  })
})

describe('a create whose answer was never stored', () => {
  test('is found and ended when its user is removed, even by a process that follows a clean end', async () => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const world = await settledWorld({ users: 2, configuration })
    world.store.mode = 'swallowing'
    world.end(['agent0'])
    await world.time.advance(interval + minute)
    world.kill(nodeOf(world))
    world.store.mode = 'working'
    const lost = world.service.activeFor('agent0').map(({ id }) => id)
    // This one stops before it has visited anybody.
    world.rosterMode = 'hanging'
    world.start()
    await world.time.advance(10 * second)
    const { keeper, process } = nodeOf(world)
    expect(process.run(() => keeper.subscription('agent0'))?.subscriptionId).not.toBe(lost[0])
    await world.stop(nodeOf(world))
    world.rosterMode = 'working'
    world.start()
    await world.time.advance(5 * minute)
    world.wantNoLonger('agent0')
    await world.time.advance(interval + 3 * minute)
    expect(lost).toHaveLength(1)
    expect(world.service.activeFor('agent0')).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })
})

describe('what a process learns while the store fails, and another one takes its turn before the store knows', () => {
  const { parameters: _, ...configuration } = defaultConfiguration

  async function afterTakeover({ isRemoved }: { isRemoved: boolean }): Promise<World> {
    const world = await settledWorld({ users: 2, configuration })
    const first = nodeOf(world)
    const next = world.start()
    await world.time.advance(minute)
    world.store.mode = 'swallowing'
    await world.time.advance(40 * second)
    world.end(['agent0'])
    await world.time.advance(second)
    world.nextFates.push({ kind: 'answered' }, { kind: 'answered' })
    world.nextFates.unshift({ kind: 'reset', effectAfterMs: 0 }, { kind: 'reset', effectAfterMs: 0 })
    first.process.receive(0, () => void first.keeper.sweep())
    await world.time.advance(second)
    first.process.suspend()
    await world.time.advance(30 * second)
    world.store.mode = 'working'
    if (isRemoved) world.wantNoLonger('agent0')
    await world.time.advance(5 * minute)
    expect(world.requests.at(-1)?.process).toBe(next.process)
    expect(world.gaps).toEqual([])
    first.process.resume()
    await world.time.advance(5 * minute)
    return world
  }

  test('is handed over, settled by a recreate, and told as a gap', async () => {
    const world = await afterTakeover({ isRemoved: false })
    expect(world.gaps.map(({ what }) => [what.username, what.cause])).toContainEqual(['agent0', 'replaced'])
    expect(gapsNotReported(world)).toEqual([])
    const [, { keeper, process } = nodeOf(world)] = world.nodes
    const [real] = world.service.activeFor('agent0')
    expect(process.run(() => keeper.subscription('agent0'))?.subscriptionId).toBe(real?.id)
    expect(world.violations).toEqual([])
  })

  test('is handed over, and ended for a user who was removed and forgotten', async () => {
    const world = await afterTakeover({ isRemoved: true })
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })
})

describe('a create without an answer', () => {
  test('is settled by a recreate, and not before it can no longer take effect', async () => {
    const world = new World({ seed: 5, usernames: ['agent0'] })
    world.nextFates.push({ kind: 'silent', effectAfterMs: 25_000 })
    world.start()
    await world.time.advance(10 * minute)
    const recreate = world.requests.find(({ kind }) => kind === 'recreate')
    const [first] = world.requests
    expect(first?.effect).toBe(201)
    expect((recreate?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(150 * second)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('is not settled by a delivery that arrives while it is on its way', async () => {
    const { parameters: _, ...configuration } = defaultConfiguration
    const world = await settledWorld({ users: 1, configuration })
    const node = nodeOf(world)
    world.nextFates.push({ kind: 'silent', effectAfterMs: 35 * second })
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
    world.nextFates.push(
      { kind: 'answered' },
      { kind: 'answered' },
      { kind: 'silent', effectAfterMs: 149_000 },
    )
    node.process.receive(0, () => void node.keeper.sweep())
    await world.time.advance(30 * second)
    world.weather = () => busy
    await world.time.advance(10 * second)
    world.weather = undefined
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

  test('while a removal is not settled yet is subscribed at the next reading of the roster, without a gap', async () => {
    const world = await removedAfterCrash()
    const before = world.requests.length
    world.want('agent1')
    await world.time.advance(interval + minute)
    expect(sentSince(world, before).filter((line) => / agent1: 20[14]$/.test(line))).toEqual([
      'create agent1: 201',
      'unsubscribe agent1: 204',
      'create agent1: 201',
    ])
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.gaps).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
  })

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

describe('a user whom the roster brings back while he is being removed', () => {
  /** The watch reads the roster two seconds after a pass has read that the user is no longer wanted. */
  async function removing({ maxRequestsPerSecond = 50, fates = [] as Fate[] }): Promise<World> {
    const world = new World({ seed: 1, usernames: agents(5), keeper: { maxRequestsPerSecond } })
    world.start()
    await world.time.advance(interval - 2 * second)
    world.wantNoLonger('agent4')
    world.nextFates.push(...fates)
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(second)
    world.want('agent4')
    await world.time.advance(interval)
    return world
  }

  test('keeps his subscription if the request to end it has not been sent', async () => {
    const world = await removing({ maxRequestsPerSecond: 1 })
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.gaps).toEqual([])
  })

  test('is subscribed again, and has his gap told, if it has', async () => {
    const slow = { kind: 'slow', effectAfterMs: 5 * second, answerAfterMs: 5 * second } as const
    const world = await removing({ fates: [slow, slow, slow, slow, slow] })
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toHaveLength(1)
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.gaps.map(({ what }) => [what.username, what.cause])).toEqual([['agent4', 'changed']])
  })
})

describe('one trouble', () => {
  test('is one report when it begins and one when it is over', async () => {
    const world = await settledWorld({ users: 20 })
    world.weather = () => ({ kind: 'status', status: 503 })
    await world.time.advance(hour)
    world.weather = undefined
    await world.time.advance(interval)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE is over'])
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
    world.weather = () => ({ kind: 'no-token' })
    await world.time.advance(hour)
    expect(codes(world)).toEqual(['CREDENTIALS'])
  })
})

describe('a roster', () => {
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
      expect(codes(world)).toEqual(['ROSTER', 'ROSTER is over'])
      expect(problemsAtTheService(world)).toEqual([])
    })
  }

  test('that lacks most users removes them when it is told to', async () => {
    const world = await settledWorld({ users: 20 })
    for (const name of agents(15)) world.wantNoLonger(name)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(world.service.active()).toHaveLength(20)
    const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep({ allowRemovals: true }))
    expect(report.removed).toBe(15)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('with a name that cannot be sent subscribes the others', async () => {
    const world = new World({ seed: 6, usernames: ['agent0', 'no,body', 'agent1', ''] })
    const node = world.start()
    const report = await world.settled(node, (keeper) => keeper.sweep())
    expect(report.failed.map(({ username }) => username).sort()).toEqual(['', 'no,body'])
    expect(world.service.active()).toHaveLength(2)
  })

  test('with a name that cannot be sent is a problem that says why, until the name is gone', async () => {
    const world = new World({ seed: 6, usernames: ['agent0', 'no,body'] })
    world.start()
    await world.time.advance(minute)
    const status = () => nodeOf(world).process.run(() => nodeOf(world).keeper.status())
    expect(status()).toMatchObject({
      counts: { active: 1, failing: 1 },
      problems: [
        {
          code: 'ROSTER',
          usernames: ['no,body'],
          message: expect.stringMatching(/^"no,body" cannot be subscribed: .* must not contain a comma/),
        },
      ],
    })
    await world.time.advance(3 * interval)
    expect(codes(world)).toEqual(['ROSTER'])
    world.wantNoLonger('no,body')
    await world.time.advance(2 * interval)
    expect(codes(world)).toEqual(['ROSTER', 'ROSTER is over'])
    expect(status().problems).toEqual([])
  })

  test('that is not believed and has a name that cannot be sent is two problems, each with its own end', async () => {
    const world = new World({ seed: 6, usernames: ['agent0', 'no,body'] })
    const node = world.start()
    await world.settled(node, (keeper) => keeper.sweep())
    const all = ['agent0', 'no,body']
    for (const name of all) world.wantNoLonger(name)
    await world.settled(node, (keeper) => keeper.sweep())
    expect(codes(world)).toEqual(['ROSTER', 'ROSTER'])
    for (const name of all) world.want(name)
    const { problems } = await world.settled(node, (keeper) => keeper.sweep())
    expect(codes(world)).toEqual(['ROSTER', 'ROSTER', 'ROSTER is over'])
    expect(problems).toMatchObject([{ code: 'ROSTER', usernames: ['no,body'] }])
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

  test('is no reason for the process that stands aside to call the new subscriptions strays', async () => {
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

  test('that was given while the store failed wins over one that was given before it, whichever comes first', async () => {
    const world = await settledWorld({ users: 2 })
    world.store.mode = 'failing'
    await world.stop(nodeOf(world))
    const older = world.start(otherSecret)
    await world.time.advance(2 * second)
    world.configuration = elsewhere
    world.start()
    await world.time.advance(2 * second)
    older.process.suspend()
    world.store.mode = 'working'
    await world.time.advance(3 * minute)
    older.process.resume()
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.problems.filter(({ what }) => what.code === 'SUPERSEDED').map(({ node }) => node)).toEqual([
      older.process.name,
    ])
  })

  test('wins over one that seems to be given in the future, by a clock that was wrong', async () => {
    const world = await settledWorld({ users: 2 })
    const { process } = nodeOf(world)
    const store = world.store.for(process)
    await world.settled(nodeOf(world), async () => {
      const head = JSON.parse(String(await store.get('coaching:head')))
      await store.set('coaching:head', JSON.stringify({ ...head, givenAt: head.givenAt + 24 * hour }))
    })
    world.kill(nodeOf(world))
    world.configuration = elsewhere
    world.start()
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('makes a process that runs an older one stand aside', async () => {
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

describe('two processes', () => {
  test('take turns: the second stands by, and takes over when the first one dies', async () => {
    const world = await settledWorld({ users: 3 })
    world.start()
    await world.time.advance(2 * interval)
    expect(new Set(world.requests.map(({ process }) => process.name))).toEqual(new Set(['process 1']))
    world.kill(nodeOf(world))
    world.end(['agent1'])
    await world.time.advance(3 * minute)
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.gaps.map(({ what }) => what.username)).toEqual(['agent1'])
  })

  test('take turns: the second takes over at once when the first one stops', async () => {
    const world = await settledWorld({ users: 3 })
    const first = nodeOf(world)
    world.start()
    await world.time.advance(minute)
    const before = world.requests.length
    await world.stop(first)
    await world.time.advance(35 * second)
    expect(world.requests.slice(before).map(({ process }) => process.name)).toContain('process 2')
  })

  test('take turns: one that slept and finds the store failing creates nothing for whom the other removed', async () => {
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

  test('take turns: one that slept while the store failed goes on only if it has seen it fail all the time', async () => {
    const world = await settledWorld({ users: 2 })
    const { process } = nodeOf(world)
    world.start()
    world.store.mode = 'failing'
    await world.time.advance(40 * second)
    process.suspend()
    world.store.mode = 'working'
    world.wantNoLonger('agent0')
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
    world.store.mode = 'failing'
    const before = world.requests.length
    process.resume()
    await world.time.advance(20 * second)
    expect(world.requests.slice(before).filter((each) => each.process === process)).toEqual([])
    world.store.mode = 'working'
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('tell of trouble while they are at work: for one that lost its turn it is over', async () => {
    const world = await settledWorld({ users: 3 })
    const { process, keeper } = nodeOf(world)
    world.start()
    world.weather = () => ({ kind: 'status', status: 503 })
    world.rosterMode = 'throwing'
    await world.time.advance(interval + minute)
    expect(codes(world).sort()).toEqual(['ROSTER', 'SERVICE'])
    process.suspend()
    await world.time.advance(5 * minute)
    process.resume()
    await world.time.advance(minute)
    expect(process.run(() => keeper.status()).problems).toEqual([])
  })

  test('take turns: one that slept finds its turn gone', async () => {
    const world = await settledWorld({ users: 3 })
    const first = nodeOf(world)
    world.start()
    await world.time.advance(minute)
    first.process.suspend()
    await world.time.advance(10 * minute)
    first.process.resume()
    const before = world.requests.length
    await world.time.advance(4 * interval)
    expect(new Set(world.requests.slice(before).map(({ process }) => process.name))).toEqual(
      new Set(['process 2']),
    )
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
    world.nextFates.push({ kind: 'answered' }, { kind: 'answered' }, { kind: 'answered' }, { kind: 'silent' })
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(40 * second)
    world.observe(999, 0)
    await world.time.advance(95 * second)
    expect(codes(world)).toEqual([])
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

  test('of a subscription that another process has just created is no stray', async () => {
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
  test('that jump cost nothing but one look at everybody', async () => {
    const world = await settledWorld({ users: 3 })
    world.jumpWallClock(nodeOf(world), -24 * hour)
    await world.time.advance(2 * interval)
    world.jumpWallClock(nodeOf(world), 48 * hour)
    await world.time.advance(2 * interval)
    expect(codes(world)).toEqual([])
    expect(world.gaps).toEqual([])
  })

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

  test('waits for a pass under way without trying those who are due over and over', async () => {
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

  describe('after an update without an answer, which may take effect late,', () => {
    /** A keeper that has brought a secret with its second update: the first is still under way. */
    async function withLateUpdate(): Promise<{ world: World; id: number; late: Record<string, string> }> {
      const world = await settledWorld({ users: 1 })
      const late = { token: world.newSecret() }
      world.configuration = { ...world.configuration, parameters: late }
      world.nextFates.push({ kind: 'silent' })
      await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters: late }))
      await world.time.advance(10 * second)
      expect(problemsAtTheService(world)).toEqual([])
      return { world, id: world.service.activeFor('agent0')[0]?.id ?? 0, late }
    }

    test('is confirmed only when it has been repeated at a time when nothing can undo it', async () => {
      const { world, id, late } = await withLateUpdate()
      const parameters = { token: world.newSecret() }
      world.configuration = { ...world.configuration, parameters }
      const before = world.requests.length
      const rotate = () => world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
      expect((await rotate()).pending).toEqual(['agent0'])
      world.service.update(id, late)
      await world.time.advance(2 * minute)
      expect(sentSince(world, before)).toEqual(['update agent0: 200', 'update agent0: 200'])
      expect(problemsAtTheService(world)).toEqual([])
      expect((await rotate()).confirmed).toEqual(['agent0'])
    })

    test('is not confirmed too early by a process that follows a clean end', async () => {
      const { world, id, late } = await withLateUpdate()
      await world.stop(nodeOf(world))
      world.configuration = { ...world.configuration, parameters: { token: world.newSecret() } }
      world.start()
      await world.time.advance(minute)
      world.service.update(id, late)
      await world.time.advance(2 * minute)
      expect(problemsAtTheService(world)).toEqual([])
    })

    test('is not confirmed too early by a process that follows a crash', async () => {
      const world = await settledWorld({ users: 1 })
      const [subscription] = world.service.activeFor('agent0')
      const late = { ...subscription?.parameters }
      world.kill(nodeOf(world))
      world.configuration = { ...world.configuration, parameters: { token: world.newSecret() } }
      world.start()
      await world.time.advance(2 * minute)
      world.service.update(subscription?.id ?? 0, late)
      await world.time.advance(2 * minute)
      expect(problemsAtTheService(world)).toEqual([])
    })

    test('is confirmed at once if that update carries the same values', async () => {
      const { world, late: parameters } = await withLateUpdate()
      const before = world.requests.length
      const rotate = world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
      expect(await rotate).toEqual({ confirmed: ['agent0'], pending: [] })
      await world.time.advance(3 * minute)
      expect(sentSince(world, before)).toHaveLength(1)
    })
  })
})
