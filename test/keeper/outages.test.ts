/** What is an outage, what is not, and how one is told: on the model of the service. */
import { describe, expect, test } from 'vitest'
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

useVirtualProcesses()

describe('an outage', () => {
  test('is not what three users have one by one, with others in between who are answered', async () => {
    const world = await settledWorld({ users: 30, keeper: { concurrency: 1 } })
    for (const name of ['agent3', 'agent13', 'agent23']) world.refused.add(name)
    const { failed, active } = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(failed.map(({ username }) => username)).toEqual(['agent3', 'agent13', 'agent23'])
    expect(active).toBe(27)
    expect(codes(world)).toEqual([])
  })

  test('of another kind than before is told as such, and the first as over', async () => {
    const world = await settledWorld({ users: 10 })
    world.weather = () => ({ kind: 'status', status: 503 })
    await world.time.advance(hour)
    expect(codes(world)).toEqual(['SERVICE'])
    world.weather = () => ({ kind: 'status', status: 403 })
    await world.time.advance(20 * minute)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE is over', 'CREDENTIALS'])
    world.weather = undefined
    await world.time.advance(20 * minute)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE is over', 'CREDENTIALS', 'CREDENTIALS is over'])
  })

  test('is tested with another user each time', async () => {
    const world = await settledWorld({ users: 10 })
    world.weather = () => ({ kind: 'status', status: 503 })
    await world.time.advance(hour)
    const testers = world.requests.slice(-8).map(({ username }) => username)
    for (const [index, tester] of testers.slice(1).entries()) expect(tester).not.toBe(testers[index])
  })
})

describe('a receiver', () => {
  test('is suspected for 15 minutes after the last end that was found, if no delivery comes', async () => {
    const world = await settledWorld({ users: 10, keeper: { sweepIntervalMs: 2 * minute } })
    world.end(agents(2))
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    await world.time.advance(10 * minute)
    world.end(['agent5'])
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    await world.time.advance(14 * minute)
    expect(codes(world)).not.toContain('RECEIVER_SUSPECTED is over')
    await world.time.advance(minute + 35 * second)
    expect(codes(world).at(-1)).toBe('RECEIVER_SUSPECTED is over')
  })
})
