/** A store that loses all it had, while several processes share it or the configuration changes. */
import { describe, expect, test } from 'vitest'
import { gapsNotReported } from './model/gaps.js'
import { problemsAtTheService } from './model/invariants.js'
import { agents, minute, nodeOf, second, settledWorld, useVirtualProcesses } from './model/setup.js'
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
