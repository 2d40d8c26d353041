/** A store that loses all it had, while several processes share it or the configuration changes. */
import { describe, expect, test } from 'vitest'
import { gapsNotReported } from './model/gaps.js'
import { problemsAtTheService } from './model/invariants.js'
import { agents, minute, nodeOf, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import { epochMs } from './model/virtual-process.js'
import { type Configuration, defaultConfiguration, type Node, type World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute

function knownIds(node: Node, usernames: readonly string[]): (number | undefined)[] {
  return usernames.map((name) => node.process.run(() => node.keeper.subscription(name))?.subscriptionId)
}

function activeIds(world: World, usernames: readonly string[]): (number | undefined)[] {
  return usernames.map((name) => world.service.activeFor(name)[0]?.id)
}

function codes(world: World, node: Node): string[] {
  return world.problems
    .filter(({ process }) => process === node.process)
    .map(({ what }) => (what.resolved ? `${what.code} is over` : what.code))
}

/** One process takes the turn after a loss, and loses it by the next to one who has not read the roster since. */
async function afterTwoLosses(world: World, change: () => void): Promise<void> {
  change()
  world.forget()
  world.start()
  await world.time.advance(second)
  world.forget()
}

describe('what another process made, and the one at work has never heard of, after two losses', () => {
  test('is kept for a user who is on the roster by now', async () => {
    const world = await settledWorld({ users: 2 })
    await afterTwoLosses(world, () => world.want('newcomer'))
    await world.time.advance(interval + minute)
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toEqual([])
    const everybody = [...agents(2), 'newcomer']
    expect(knownIds(nodeOf(world), everybody)).toEqual(activeIds(world, everybody))
    expect(world.gaps.map(({ what }) => what.username)).toContain('newcomer')
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('is ended for a user whom the roster lacks', async () => {
    const world = await settledWorld({ users: 2 })
    await afterTwoLosses(world, () => world.want('newcomer'))
    world.wantNoLonger('newcomer')
    await world.time.advance(interval + minute)
    expect(world.service.subscriptions.filter(({ usernames }) => usernames.includes('newcomer'))).not.toEqual(
      [],
    )
    expect(world.service.activeFor('newcomer')).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('is neither ended nor made anew while the roster cannot be read', async () => {
    const world = await settledWorld({ users: 2 })
    await afterTwoLosses(world, () => world.want('newcomer'))
    const ids = activeIds(world, ['newcomer'])
    world.rosterMode = 'throwing'
    await world.time.advance(2 * interval)
    expect(activeIds(world, ['newcomer'])).toEqual(ids)
    world.rosterMode = 'working'
    await world.time.advance(interval + minute)
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe('a configuration that changes just when the store has lost all', () => {
  const rotated: Configuration = { ...defaultConfiguration, parameters: { token: 's3cret-2' } }
  const elsewhere: Configuration = {
    ...defaultConfiguration,
    callbackUrl: 'https://app.example.com/elsewhere',
  }
  const otherTypes: Configuration = { ...defaultConfiguration, notificationTypes: ['behavioral'] }

  test('by a rotation of parameters is brought to everybody whom the process remembers, without a gap', async () => {
    const world = await settledWorld({ users: 3 })
    const ids = activeIds(world, agents(3))
    world.wantNoLonger('agent2')
    world.forget()
    world.configure(rotated)
    const { confirmed } = await world.settled(nodeOf(world), (keeper) =>
      keeper.rotateParameters({ parameters: rotated.parameters ?? {} }),
    )
    await world.time.advance(interval + minute)
    expect([...confirmed].sort()).toEqual(agents(2))
    expect(activeIds(world, agents(2))).toEqual(ids.slice(0, 2))
    expect(world.gaps).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })

  for (const { what, next } of [
    { what: 'other parameters', next: rotated },
    { what: 'another callback URL', next: elsewhere },
    { what: 'fewer types', next: otherTypes },
  ]) {
    for (const generations of [1, 3]) {
      test(`to ${what} after ${generations} generations wins over the process that remembers, which leaves nothing behind`, async () => {
        const world = await settledWorld({ users: 3 })
        for (let generation = 2; generation <= generations; generation++) {
          const parameters = { token: world.newSecret() }
          world.configure({ ...defaultConfiguration, parameters })
          await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
        }
        const old = nodeOf(world)
        world.wantNoLonger('agent2')
        world.forget()
        world.configure(next)
        const successor = world.start()
        await world.time.advance(interval + minute)
        expect(codes(world, old)).toContain('SUPERSEDED')
        expect(codes(world, successor)).not.toContain('SUPERSEDED')
        expect(problemsAtTheService(world)).toEqual([])
        expect(gapsNotReported(world)).toEqual([])
        expect(knownIds(successor, agents(2))).toEqual(activeIds(world, agents(2)))
        expect(world.violations).toEqual([])
      })
    }
  }

  test('stays the old one for a process that only starts anew, and nobody stands aside', async () => {
    const world = await settledWorld({ users: 3 })
    for (let generation = 2; generation <= 3; generation++) {
      const parameters = { token: world.newSecret() }
      world.configure({ ...defaultConfiguration, parameters })
      await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
    }
    world.forget()
    const another = world.start()
    await world.time.advance(interval + minute)
    expect(codes(world, nodeOf(world))).not.toContain('SUPERSEDED')
    expect(codes(world, another)).not.toContain('SUPERSEDED')
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
  })
})

describe('what processes remember of a user, when the store was begun anew by another one', () => {
  const { parameters: _, ...withoutParameters } = defaultConfiguration
  const elsewhere: Configuration = {
    ...defaultConfiguration,
    callbackUrl: 'https://app.example.com/elsewhere',
  }

  function gapsOf(world: World, username: string) {
    return world.gaps.map(({ what }) => what).filter((gap) => gap.username === username)
  }

  test('tells a gap before the first meeting, however many deliveries of the next subscription arrive meanwhile', async () => {
    const world = await settledWorld({ users: 1, configuration: withoutParameters })
    world.forget()
    await world.time.advance(300)
    world.end(['agent0'])
    world.start()
    for (let count = 0; count < 9; count++) {
      await world.time.advance(20 * second)
      world.callback('agent0')
    }
    await world.time.advance(interval)
    expect(gapsNotReported(world)).toEqual([])
    expect(gapsOf(world, 'agent0')).toMatchObject([{ cause: 'replaced' }])
  })

  test('tells a gap also if the one who met the user has another callback URL', async () => {
    const world = await settledWorld({ users: 1, configuration: withoutParameters })
    world.kill(nodeOf(world))
    await world.time.advance(300)
    world.configure({ ...withoutParameters, callbackUrl: elsewhere.callbackUrl })
    const next = world.start()
    await world.time.advance(10 * second)
    expect(codes(world, next)).toEqual([])
    world.end(['agent0'])
    world.forget()
    await world.time.advance(interval + minute)
    expect(gapsNotReported(world)).toEqual([])
    expect(gapsOf(world, 'agent0')).toHaveLength(1)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('tells a gap also if the one who met the user is dead by then', async () => {
    const world = await settledWorld({ users: 1 })
    const [first] = world.nodes as [Node]
    first.process.suspend()
    world.end(['agent0'])
    world.forget()
    const second = world.start()
    await world.time.advance(minute)
    world.kill(second)
    world.start()
    await world.time.advance(interval)
    expect(gapsOf(world, 'agent0')).toEqual([])
    first.process.resume()
    await world.time.advance(interval)
    expect(gapsNotReported(world)).toEqual([])
    expect(gapsOf(world, 'agent0')).toMatchObject([{ cause: 'replaced' }])
  })

  test('is handed on with the gap that is not over yet, if the store is lost once more', async () => {
    const world = await settledWorld({ users: 1, configuration: withoutParameters })
    const [first] = world.nodes as [Node]
    const endedAtMs = world.time.nowMs
    world.forget()
    world.end(['agent0'])
    const next = world.start()
    await world.time.advance(minute)
    expect(codes(world, first)).toEqual(['STORE', 'STORE is over'])
    world.kill(first)
    expect(nodeOf(world)).toBe(next)
    expect(gapsOf(world, 'agent0')).toEqual([])
    // The next one has taken over what was left.
    await world.time.advance(5 * second)
    world.configure({ ...withoutParameters, callbackUrl: elsewhere.callbackUrl })
    world.forget()
    world.start()
    await world.time.advance(interval)
    const [gap] = gapsOf(world, 'agent0')
    expect(gap?.lastProvenAt).toBeLessThan(epochMs + endedAtMs)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('tells one gap, however many remember the user', async () => {
    const world = await settledWorld({ users: 2 })
    world.start()
    await world.time.advance(minute)
    world.start()
    await world.time.advance(minute)
    world.forget()
    world.end(['agent0'])
    world.configure(elsewhere)
    world.start()
    await world.time.advance(2 * interval)
    expect(gapsNotReported(world)).toEqual([])
    expect(gapsOf(world, 'agent0')).toHaveLength(1)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('tells nothing that was told already, if the store has only failed', async () => {
    const world = await settledWorld({ users: 1, isStoreSynchronous: true })
    const [first] = world.nodes
    world.start()
    await world.time.advance(minute)
    world.store.mode = 'failing'
    await world.time.advance(20 * second)
    world.end(['agent0'])
    first?.process.receive(0, () => void first.keeper.sweep())
    await world.time.advance(5 * second)
    first?.process.suspend()
    await world.time.advance(40 * second)
    world.store.mode = 'working'
    await world.time.advance(interval)
    expect(gapsOf(world, 'agent0').map(({ cause }) => cause)).toEqual(['ended', 'replaced'])
    first?.process.resume()
    await world.time.advance(interval)
    expect(gapsOf(world, 'agent0')).toHaveLength(2)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('reaches the one at work also from a process that stands aside for good, whatever was written meanwhile', async () => {
    const world = await settledWorld({ users: 1, configuration: withoutParameters })
    world.forget()
    await world.time.advance(300)
    const notificationTypes = ['behavioral', 'conversation-ai'] as const
    world.configure({ ...withoutParameters, notificationTypes })
    const next = world.start()
    await world.time.advance(20)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    await world.time.advance(interval)
    expect(codes(world, nodeOf(world))).toContain('SUPERSEDED')
    expect(problemsAtTheService(world)).toEqual([])
    expect(codes(world, next)).toEqual(['CONFLICT', 'CONFLICT is over'])
    expect(gapsNotReported(world)).toEqual([])
  })

  test('is handed over by a process that stops before it knows that the store was lost', async () => {
    const world = await settledWorld({ users: 1, configuration: withoutParameters })
    const old = nodeOf(world)
    world.forget()
    world.configure({ ...withoutParameters, callbackUrl: elsewhere.callbackUrl })
    world.start()
    await world.time.advance(100)
    await world.stop(old)
    await world.time.advance(interval)
    expect(codes(world, old)).toEqual(['STORE', 'STORE is over'])
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
  })

  test('is handed over by a process that stood by, and stops before it knows that the store was lost', async () => {
    const world = await settledWorld({ users: 1 })
    const [first] = world.nodes as [Node]
    const other = world.start()
    await world.time.advance(minute)
    world.kill(first)
    world.forget()
    world.end(['agent0'])
    world.start()
    await world.time.advance(3 * second)
    await world.stop(other)
    await world.time.advance(interval)
    expect(gapsOf(world, 'agent0')).toMatchObject([{ cause: 'replaced' }])
    expect(gapsNotReported(world)).toEqual([])
  })

  test('is handed over by a process that has slept, and stops before it knows that another one has followed', async () => {
    const world = await settledWorld({ users: 1, configuration: withoutParameters, isStoreSynchronous: true })
    const [first] = world.nodes as [Node]
    const next = world.start()
    await world.time.advance(minute)
    world.store.mode = 'failing'
    await world.time.advance(20 * second)
    world.end(['agent0'])
    first.process.receive(0, () => void first.keeper.sweep())
    await world.time.advance(5 * second)
    first.process.suspend()
    await world.time.advance(40 * second)
    world.store.mode = 'working'
    await world.time.advance(5 * minute)
    first.process.resume()
    await world.stop(first)
    await world.time.advance(5 * minute)
    expect(knownIds(next, ['agent0'])).toEqual(activeIds(world, ['agent0']))
  })
})
