/** A store that loses all it had, while several processes share it. */
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/invariants.js'
import { agents, minute, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import type { Node, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute

function firstNode(world: World): Node {
  const [node] = world.nodes
  if (node === undefined) throw new Error('No process is alive.')
  return node
}

function knownIds(node: Node, usernames: readonly string[]): (number | undefined)[] {
  return usernames.map((name) => node.process.run(() => node.keeper.subscription(name))?.subscriptionId)
}

function activeIds(world: World, usernames: readonly string[]): (number | undefined)[] {
  return usernames.map((name) => world.service.activeFor(name)[0]?.id)
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
    expect(knownIds(firstNode(world), everybody)).toEqual(activeIds(world, everybody))
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
