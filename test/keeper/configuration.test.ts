/** Which of several configurations is the newest one. */
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/rules/final-state.js'
import { codes, minute, nodeOf, settledWorld, troublesOf, useVirtualProcesses } from './model/setup.js'
import { defaultConfiguration, type Node } from './model/world.js'

useVirtualProcesses()

describe('a configuration that is deployed', () => {
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

describe('a new process', () => {
  test('with another configuration supersedes those that run, also an older one that comes back', async () => {
    const world = await settledWorld({ users: 2 })
    const older = nodeOf(world)
    const newer = { ...defaultConfiguration, parameters: { token: world.newSecret() } }
    world.configure(newer)
    world.start(newer)
    await world.time.advance(2 * minute)
    expect(troublesOf(older)).toEqual(['SUPERSEDED'])
    const before = world.requests.length
    await world.settled(older, (keeper) => keeper.sweep())
    expect(world.requests.slice(before)).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('whose configuration is announced while the store is down wins by reaching the store last', async () => {
    const world = await settledWorld({ users: 2 })
    await world.stop(nodeOf(world))
    world.store.mode = 'failing'
    const first = world.start({ ...defaultConfiguration, parameters: { token: world.newSecret() } })
    first.process.suspend()
    const other = { ...defaultConfiguration, parameters: { token: world.newSecret() } }
    const second = world.start(other)
    await world.time.advance(10_000)
    world.store.mode = 'working'
    await world.time.advance(minute)
    expect(troublesOf(second)).toEqual([])
    first.process.resume()
    await world.time.advance(2 * minute)
    world.configure(first.configuration)
    expect([troublesOf(first), troublesOf(second)]).toEqual([[], ['SUPERSEDED']])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('whose clock is behind announces a later generation all the same', async () => {
    const world = await settledWorld({ users: 2 })
    const older = nodeOf(world)
    const newer = { ...defaultConfiguration, parameters: { token: world.newSecret() } }
    world.configure(newer)
    const node = world.start(newer, false)
    node.process.jumpWallClock(-3_600_000)
    node.process.run(() => node.keeper.start())
    await world.time.advance(2 * minute)
    expect([troublesOf(older), troublesOf(node)]).toEqual([['SUPERSEDED'], []])
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe('a rotation', () => {
  test('in a process that has not noticed a newer configuration does not bring its own back', async () => {
    const world = await settledWorld({ users: 2 })
    const older = nodeOf(world)
    await world.time.advance(minute)
    const newer = { ...defaultConfiguration, parameters: { tenant: world.newSecret() } }
    world.configure(newer)
    const node = world.start(newer)
    await world.time.advance(200)
    expect(troublesOf(older)).toEqual([])
    const rotation = { parameters: { tenant: world.newSecret() } }
    world.configure({ ...newer, ...rotation })
    for (const { process, keeper } of [node, older]) {
      process.receive(0, () => void keeper.rotateParameters(rotation))
      await world.time.advance(500)
    }
    await world.time.advance(3 * minute)
    expect([troublesOf(older), troublesOf(node)]).toEqual([['SUPERSEDED'], []])
    expect(problemsAtTheService(world)).toEqual([])
  })

  for (const isEverywhere of [true, false]) {
    const where = isEverywhere ? 'everywhere' : 'in an older process'
    test(`${where} brings back no older configuration, though the store has lost the newer one`, async () => {
      const world = await settledWorld({ users: 2 })
      const older = nodeOf(world)
      await world.time.advance(minute)
      const newer = { ...defaultConfiguration, callbackUrl: 'https://app.example.com/elsewhere' }
      world.configure(newer)
      const node = world.start(newer)
      await world.settled(node, (keeper) => keeper.sweep())
      expect(troublesOf(older)).toEqual([])
      world.store.forget()
      const rotation = { parameters: { token: world.newSecret() } }
      if (isEverywhere) world.configure({ ...newer, ...rotation })
      for (const { process, keeper } of isEverywhere ? [older, node] : [older]) {
        process.receive(0, () => void keeper.rotateParameters(rotation))
        await world.time.advance(500)
      }
      await world.time.advance(16 * minute)
      expect(troublesOf(older)).toContain('SUPERSEDED')
      expect(troublesOf(node)).not.toContain('SUPERSEDED')
      expect(problemsAtTheService(world)).toEqual([])
    })
  }

  test('that follows another one at once wins in every process', async () => {
    const world = await settledWorld({ users: 2 })
    world.start()
    await world.time.advance(3 * minute)
    const rotations = [world.newSecret(), world.newSecret()].map((token) => ({ parameters: { token } }))
    world.configure({ ...defaultConfiguration, ...rotations[1] })
    for (const { process, keeper } of world.nodes) {
      process.receive(0, () => {
        for (const rotation of rotations) void keeper.rotateParameters(rotation)
      })
    }
    await world.time.advance(3 * minute)
    expect(codes(world)).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })
})
