/** A store that fails: nothing is sent, and everything is repaired when it works again. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { problemsAtTheService } from './model/rules/final-state.js'
import { gapsNotReported } from './model/rules/gaps.js'
import {
  agents,
  codes,
  minute,
  nodeOf,
  second,
  settledWorld,
  troublesOf,
  useVirtualProcesses,
} from './model/setup.js'
import { defaultConfiguration, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute

describe.each(['failing', 'hanging', 'forgetting'] as const)('while the store is %s', (mode) => {
  test('nothing is sent, and everything is repaired when it works again', async () => {
    const world = await settledWorld({ users: 6 })
    await world.time.advance(interval)
    world.store.mode = mode
    await world.time.advance(6 * second)
    const before = world.requests.length
    world.end(['agent0', 'agent1'])
    world.want('newcomer')
    world.wantNoLonger('agent2')
    await world.time.advance(3 * interval)
    expect(world.requests.length).toBe(before)
    expect(troublesOf(nodeOf(world))).toEqual(['STORE'])

    world.store.mode = 'working'
    await world.time.advance(interval + 2 * minute)
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
    expect(troublesOf(nodeOf(world))).not.toContain('STORE')
    expect(world.violations).toEqual([])
  })
})

test('a store that takes three seconds for each operation is one that works', async () => {
  const world = await settledWorld({ users: 4 })
  world.store.mode = 'slow'
  world.end(['agent0'])
  world.want('newcomer')
  const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  expect(report).toMatchObject({ active: 5, created: 1, restored: 1, failed: [] })
  expect(codes(world)).not.toContain('STORE')
})

test('a sweep waits a minute for the store, and then names everybody', async () => {
  const world = await settledWorld({ users: 3 })
  world.store.mode = 'failing'
  const startedMs = world.time.nowMs
  const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  expect(world.time.nowMs - startedMs).toBeGreaterThanOrEqual(minute)
  expect(world.time.nowMs - startedMs).toBeLessThan(2 * minute)
  expect(report.failed.map(({ username }) => username).sort()).toEqual(agents(3))
  expect(report.active).toBe(0)
})

test('a process that never reached the store refuses to report that nothing is left to do', async () => {
  const world = new World({ seed: 1, usernames: agents(3) })
  world.store.mode = 'failing'
  const node = world.start(world.configuration, false)
  await expect(world.settled(node, (keeper) => keeper.unsubscribeAll())).rejects.toThrow()
  const rotation = await world.settled(node, (keeper) =>
    keeper.rotateParameters({ parameters: { token: world.newSecret() } }),
  )
  expect(rotation).toEqual({ confirmed: [], pending: agents(3) })
})

describe('a request whose answer the store could not take', () => {
  test('leaves its claim, and is found out two minutes later', async () => {
    const world = await settledWorld({ users: 2 })
    await world.time.advance(interval)
    world.end(['agent0'])
    const sweeping = world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const restored = () => world.service.activeFor('agent0').length > 0
    while (!restored()) await world.time.advance(1)
    world.store.mode = 'failing'
    await world.time.advance(20 * second)
    world.store.mode = 'working'
    const report = await sweeping
    expect(report.failed).toEqual([])
    expect(problemsAtTheService(world)).toEqual([])
    expect(gapsNotReported(world)).toEqual([])
    expect(world.violations).toEqual([])
  })
})

describe('one key of the store', () => {
  const garbage: [string, string | undefined][] = [
    ['garbage', 'garbage'],
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['a number', '0'],
    ['a number out of its bounds', '{"version":1e99,"username":"agent0"}'],
    ['a text of 70 kB', 'x'.repeat(70_000)],
  ]

  test.each(garbage)(
    'that holds %s instead of a record is written again from memory',
    async (_name, text) => {
      const world = await settledWorld({ users: 3 })
      world.store.spoil(keyOf('agent0'), text)
      const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
      expect(report).toMatchObject({ active: 3, failed: [] })
      expect(troublesOf(nodeOf(world))).toEqual([])
    },
  )

  test.each([...garbage, ['nothing that can be read', undefined] as [string, undefined]])(
    'that holds %s is a STORE problem of its user alone for a process that knows no better',
    async (_name, text) => {
      const world = await settledWorld({ users: 3 })
      const key = keyOf('agent0')
      await world.stop(nodeOf(world))
      world.store.spoil(key, text)
      const node = world.start(world.configuration, false)
      const report = await world.settled(node, (keeper) => keeper.sweep())
      expect(report).toMatchObject({ wanted: 3, active: 2 })
      expect(report.failed.map(({ username }) => username)).toEqual(['agent0'])
      const { counts, problems } = node.process.run(() => node.keeper.status())
      expect(counts).toEqual({ active: 2, unproven: 0, conflict: 0, failing: 1 })
      expect(problems).toMatchObject([{ code: 'STORE', message: expect.stringContaining(key) }])

      world.store.clean()
      await world.settled(node, (keeper) => keeper.sweep())
      expect(troublesOf(node)).toEqual([])
      expect(problemsAtTheService(world)).toEqual([])
      expect(world.violations).toEqual([])
    },
  )

  test('that holds no configuration keeps a new process from sending anything', async () => {
    const world = await settledWorld({ users: 2 })
    await world.stop(nodeOf(world))
    world.store.spoil('coaching:configuration', 'garbage')
    const before = world.requests.length
    const node = world.start()
    await world.time.advance(5 * minute)
    expect(world.requests.length).toBe(before)
    expect(troublesOf(node)).toEqual(['STORE'])
  })

  test('that holds no members keeps nobody of its shard from being kept, and everybody new from being created', async () => {
    const world = await settledWorld({ users: 3 })
    await world.stop(nodeOf(world))
    for (let shard = 0; shard < 64; shard++) world.store.spoil(`coaching:members:${shard}`, 'garbage')
    world.want('newcomer')
    const node = world.start()
    // The second time the user has been tried before: that changes nothing.
    for (let sweeps = 0; sweeps < 2; sweeps++) {
      const report = await world.settled(node, (keeper) => keeper.sweep())
      expect(report).toMatchObject({ active: 3, created: 0, failed: [{ username: 'newcomer' }] })
    }
    expect(troublesOf(node)).toContain('STORE')
  })
})

test('a process that lost sight of the store leaves its users to the others', async () => {
  const world = await settledWorld({ users: 4, processes: 2 })
  const other = world.start()
  await world.time.advance(minute)
  world.store.cutOff(nodeOf(world).process)
  world.end(agents(4))
  const report = await world.settled(other, (keeper) => keeper.sweep())
  expect(report).toMatchObject({ restored: 4, failed: [] })
  world.store.reconnect(nodeOf(world).process)
  await world.time.advance(2 * interval)
  expect(problemsAtTheService(world)).toEqual([])
  expect(world.violations).toEqual([])
})

test('a rotation while the store fails is brought to everybody when it works again', async () => {
  const world = await settledWorld({ users: 3 })
  world.store.mode = 'failing'
  const parameters = { token: world.newSecret() }
  world.configure({ ...defaultConfiguration, parameters })
  const node = nodeOf(world)
  const report = await world.settled(node, (keeper) => keeper.rotateParameters({ parameters }))
  expect(report).toEqual({ confirmed: [], pending: agents(3) })
  world.store.mode = 'working'
  await world.time.advance(2 * minute)
  expect(problemsAtTheService(world)).toEqual([])
})

function keyOf(username: string): string {
  return `coaching:user:${createHash('sha256').update(username, 'utf16le').digest('base64url').slice(0, 24)}`
}

test('a key that cannot be used is tried more and more rarely, also while deliveries arrive', async () => {
  const world = await settledWorld({ users: 1 })
  const key = world.store.keys.find((name) => name.includes(':user:')) ?? ''
  const deliver = async (minutes: number) => {
    for (let passed = 0; passed < minutes; passed++) {
      await world.time.advance(minute)
      world.callback('agent0')
    }
  }
  await deliver(6)
  world.store.spoil(key, undefined)
  await deliver(4)
  const failures = () => world.logged.filter((line) => line.includes('subscription.failed')).length
  const before = failures()
  await deliver(5)
  expect(failures() - before).toBeLessThan(15)
})
