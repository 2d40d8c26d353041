/** Which of several deployments is the newest one. */
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/invariants.js'
import { minute, second, settledWorld, useVirtualProcesses } from './model/setup.js'
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
})
