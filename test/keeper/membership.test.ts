/** Who is wanted, as the roster says, when the turn changes between processes. */
import { describe, expect, test } from 'vitest'
import { minute, second, settledWorld, troublesOf, useVirtualProcesses } from './model/setup.js'
import type { Node } from './model/world.js'

useVirtualProcesses()

describe('a user whom the client refuses', () => {
  test('and whom the roster drops while another process has the turn is a trouble no longer', async () => {
    const world = await settledWorld({ users: 2 })
    const [first] = world.nodes as [Node]
    world.want('alice,bob')
    await world.settled(first, (keeper) => keeper.sweep())
    expect(troublesOf(first)).toEqual(['ROSTER'])
    const other = world.start()
    await world.time.advance(20 * second)
    first.process.suspend()
    await world.time.advance(5 * minute)
    world.wantNoLonger('alice,bob')
    await world.stop(other)
    first.process.resume()
    await world.time.advance(2 * minute)
    expect(world.requests.at(-1)?.process).toBe(first.process)
    expect(troublesOf(first)).toEqual([])
    expect(world.violations).toEqual([])
  })
})
