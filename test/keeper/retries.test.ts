/** How often, and how soon, what has failed is tried again: on the model of the service. */
import { describe, expect, test } from 'vitest'
import { hour, minute, nodeOf, second, settledWorld, useVirtualProcesses } from './model/setup.js'

useVirtualProcesses()

describe('one user for whom the service refuses everything', () => {
  test('is tried ever more rarely, from 5 seconds to 5 minutes, and the others as always', async () => {
    const world = await settledWorld({ users: 5 })
    world.refused.add('agent2')
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(2 * hour)
    const times = world.requests
      .filter(({ username, atMs }) => username === 'agent2' && atMs > minute)
      .map(({ atMs }) => atMs)
    const waits = times.slice(1).map((time, index) => Math.round((time - (times[index] as number)) / second))
    expect(waits.slice(0, 7)).toEqual([5, 10, 20, 40, 80, 160, 300])
    expect(times.length).toBeLessThan(35)
    expect(world.problems).toEqual([])
  })

  test('and is accepted again is as new: the next failure is followed by a short wait', async () => {
    const world = await settledWorld({ users: 5 })
    world.refused.add('agent2')
    await world.time.advance(hour)
    world.refused.clear()
    await world.time.advance(20 * minute)
    world.refused.add('agent2')
    const before = world.requests.length
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    await world.time.advance(7 * second)
    const ofUser = world.requests.slice(before).filter(({ username }) => username === 'agent2')
    expect(ofUser).toHaveLength(2)
  })
})

describe('a sweep', () => {
  test('repeats within itself what fails in passing', async () => {
    const world = await settledWorld({ users: 3 })
    world.want('newcomer')
    world.nextFates.push({ kind: 'status', status: 503 })
    const { failed, active } = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect({ failed, active }).toEqual({ failed: [], active: 4 })
  })

  test('names who failed three times in it', async () => {
    const world = await settledWorld({ users: 3 })
    world.refused.add('agent2')
    const { failed } = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(failed.map(({ username }) => username)).toEqual(['agent2'])
  })
})
