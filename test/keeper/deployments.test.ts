/** Which of several deployments is the newest one. */
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/invariants.js'
import { minute, second, settledWorld, troublesOf, useVirtualProcesses } from './model/setup.js'
import { type Configuration, defaultConfiguration, type Node, type World } from './model/world.js'

useVirtualProcesses()

const other: Configuration = { ...defaultConfiguration, parameters: { token: 's3cret-b' } }

function isSuperseded(world: World, { process }: Node): boolean {
  return world.problems.some((each) => each.process === process && each.what.code === 'SUPERSEDED')
}

describe('a configuration that is deployed', () => {
  test('and rolled back before its process has come to the store is the one that loses', async () => {
    const world = await settledWorld({ users: 2 })
    const deployed = world.start(other)
    await world.time.advance(1)
    const rolledBack = world.start()
    await world.time.advance(3 * minute)
    expect(isSuperseded(world, deployed)).toBe(true)
    expect(isSuperseded(world, rolledBack)).toBe(false)
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('and rolled back while it could not reach the store is the one that loses', async () => {
    const world = await settledWorld({ users: 2 })
    const deployed = world.start(other)
    deployed.process.suspend()
    await world.time.advance(second)
    const rolledBack = world.start()
    await world.time.advance(minute)
    deployed.process.resume()
    await world.time.advance(3 * minute)
    expect(isSuperseded(world, deployed)).toBe(true)
    expect(isSuperseded(world, rolledBack)).toBe(false)
    expect(problemsAtTheService(world)).toEqual([])
  })

  for (const laterMs of [0, 3, 20]) {
    test(`by a rotation is not newer than itself for a process that hears of it ${laterMs} ms after it has woken`, async () => {
      const world = await settledWorld({ users: 2 })
      const [first] = world.nodes as [Node]
      const second = world.start()
      await world.time.advance(3 * minute)
      second.process.suspend()
      const parameters = { token: world.newSecret() }
      world.configure({ ...defaultConfiguration, parameters })
      const rotate = ({ process, keeper }: Node) =>
        process.receive(0, () => void keeper.rotateParameters({ parameters }))
      rotate(first)
      await world.time.advance(minute)
      await world.stop(first)
      second.process.resume()
      await world.time.advance(laterMs)
      rotate(second)
      await world.time.advance(3 * minute)
      expect(troublesOf(second)).toEqual([])
      expect(problemsAtTheService(world)).toEqual([])
    })
  }
})
