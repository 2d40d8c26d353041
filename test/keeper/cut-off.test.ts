/** What a process does, and says, that cannot read the store. */
import { describe, expect, test } from 'vitest'
import { gapsNotReported } from './model/gaps.js'
import { problemsAtTheService } from './model/invariants.js'
import { agents, minute, nodeOf, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import { defaultConfiguration, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute

describe('a rotation while the store fails', () => {
  test('leaves everybody pending, and the process at work goes on restoring', async () => {
    const world = await settledWorld({ users: 3 })
    world.store.mode = 'failing'
    await world.time.advance(40 * second)
    const parameters = { token: world.newSecret() }
    const report = await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
    expect([...report.pending].sort()).toEqual(agents(3))
    expect(report.confirmed).toEqual([])
    world.end(agents(3))
    await world.time.advance(interval + minute)
    expect(agents(3).flatMap((name) => world.service.activeFor(name))).toHaveLength(3)
    world.configure({ ...defaultConfiguration, parameters })
    world.store.mode = 'working'
    await world.time.advance(interval + minute)
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('is brought to everybody as soon as the store works again, also to those whose deliveries save their probes', async () => {
    const world = await settledWorld({ users: 3 })
    world.store.mode = 'failing'
    const parameters = { token: world.newSecret() }
    await world.settled(nodeOf(world), (keeper) => keeper.rotateParameters({ parameters }))
    world.configure({ ...defaultConfiguration, parameters })
    world.store.mode = 'working'
    for (let passed = 0; passed < 2 * minute; passed += 20 * second) {
      await world.time.advance(20 * second)
      for (const name of agents(3)) world.callback(name)
    }
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('from the beginning on names those of the roster as pending, and rejects if there is none', async () => {
    const world = new World({ seed: 1, usernames: agents(2) })
    world.store.mode = 'failing'
    const { process, keeper } = world.start()
    const rotate = () =>
      world.settled({ process, keeper, configuration: defaultConfiguration }, (each) =>
        each.rotateParameters({ parameters: { token: 's3cret-2' } }),
      )
    await world.time.advance(minute)
    expect(await rotate()).toEqual({ confirmed: [], pending: agents(2) })
    world.rosterMode = 'throwing'
    await expect(rotate()).rejects.toThrow(/rotateParameters has done nothing.*store cannot be read/)
  })
})

describe('an end of everything', () => {
  test('that is asked of a process that stands by names everybody as failed', async () => {
    const world = await settledWorld({ users: 3 })
    const other = world.start()
    await world.time.advance(minute)
    const report = await world.settled(other, (keeper) => keeper.unsubscribeAll())
    expect(report.failed.map(({ username }) => username).sort()).toEqual(agents(3))
    expect(report).toMatchObject({ wanted: 0, removed: 0 })
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('that is asked of a process that has never read the store is refused', async () => {
    const world = new World({ seed: 1, usernames: agents(2) })
    world.store.mode = 'failing'
    const node = world.start()
    await world.time.advance(minute)
    const end = world.settled(node, (keeper) => keeper.unsubscribeAll())
    await expect(end).rejects.toThrow(/unsubscribeAll has done nothing/)
  })
})

describe('a process that goes on without the store', () => {
  test('restores by plain creates, and sends no update: another process may have brought newer parameters', async () => {
    const world = await settledWorld({ users: 2 })
    world.store.mode = 'failing'
    await world.time.advance(2 * minute)
    const before = world.requests.length
    world.end(['agent1'])
    await world.time.advance(10 * interval)
    const kinds = world.requests.slice(before).map(({ kind }) => kind)
    expect(new Set(kinds)).toEqual(new Set(['create']))
    expect(world.service.activeFor('agent1')).toHaveLength(1)
    world.store.mode = 'working'
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
    expect(world.violations).toEqual([])
  })
})

describe('what a process remembers of a store that was lost, and another process has met anew meanwhile', () => {
  test('becomes a gap from its last proof on', async () => {
    const world = await settledWorld({ users: 1 })
    world.forget()
    world.start()
    await world.time.advance(200)
    world.end(['agent0'])
    await world.time.advance(interval + minute)
    const [gap] = world.gaps.map(({ what }) => what)
    expect(gap).toMatchObject({ username: 'agent0', cause: 'replaced' })
    expect(gap?.lastProvenAt).toBeDefined()
    expect(gapsNotReported(world)).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
  })
})
