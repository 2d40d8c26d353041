/** Several processes: which configuration holds, and how the work is divided. */
import { describe, expect, test } from 'vitest'
import type { Node, World } from './convergence/world.js'
import { hour, minute, second } from './convergence/world.js'
import { agents, nodeOf, problemCodes, settledWorld, tellStories, worldOf } from './stories.js'

tellStories()

describe('a newer configuration', () => {
  /** Two processes, and a third with another token. */
  async function withCanary(): Promise<{ world: World; canary: Node; stable: readonly Node[] }> {
    const world = await settledWorld({ users: 20, processes: 2 })
    const stable = [...world.nodes]
    const canary = world.start({ ...world.configuration, parameters: { token: world.newSecret() } })
    await world.time.advance(3 * minute)
    expect(stable.map(problemCodes)).toEqual([['SUPERSEDED'], ['SUPERSEDED']])
    return { world, canary, stable }
  }

  const isStable = ({ configuration, service }: World) =>
    service.active('keeper').every(({ parameters }) => parameters.token === configuration.parameters?.token)

  test.each(['killed', 'stopped'] as const)(
    'that is %s gives way to the one before within two minutes, and ends are restored',
    async (how) => {
      const { world, canary, stable } = await withCanary()
      expect(isStable(world)).toBe(false)
      if (how === 'stopped') await world.settled(canary, (keeper) => keeper.stop())
      canary.process.kill()
      world.end(agents(10))
      await world.time.advance(2 * minute)
      expect(stable.flatMap(problemCodes)).not.toContain('SUPERSEDED')
      await world.time.advance(5 * second)
      expect(world.service.active('keeper')).toHaveLength(20)
      expect(isStable(world)).toBe(true)
    },
  )

  test('holds while its process lives, whatever is tried', async () => {
    const { world, canary, stable } = await withCanary()
    const heldAtMs = world.time.nowMs
    await world.time.advance(2 * hour)
    expect(stable.map(problemCodes)).toEqual([['SUPERSEDED'], ['SUPERSEDED']])
    expect(problemCodes(canary)).toEqual([])
    const senders = world.requests.filter(({ atMs }) => atMs > heldAtMs).map(({ process }) => process)
    expect(new Set(senders)).toEqual(new Set([canary.process]))
  })

  test('reaches every user in a first sweep of 200 seconds, beside an old process that lives', async () => {
    const world = worldOf({ users: 420, keeper: { maxRequestsPerSecond: 2 } })
    const stable = world.start()
    await world.time.advance(4 * minute)
    world.configuration = { ...world.configuration, parameters: { token: world.newSecret() } }
    const deployed = world.start(world.configuration, false)
    const startedAtMs = world.time.nowMs
    const report = await world.settled(deployed, (keeper) => keeper.sweep())
    expect(world.time.nowMs - startedAtMs).toBeGreaterThan(200 * second)
    // The old process has no share of the rate.
    expect(world.time.nowMs - startedAtMs).toBeLessThan(240 * second)
    expect(report).toMatchObject({ wanted: 420, active: 420, failed: [], problems: [] })
    deployed.process.run(() => deployed.keeper.start())
    await world.time.advance(5 * minute)
    expect(isStable(world)).toBe(true)
    expect([stable, deployed].map(problemCodes)).toEqual([['SUPERSEDED'], []])
  })

  test.each(agents(10).map((_, seed) => seed))(
    'stays when the store was away for 150 seconds (seed %i)',
    async (seed) => {
      const world = await settledWorld({ users: 20, processes: 2, seed })
      const stable = [...world.nodes]
      world.configuration = { ...world.configuration, parameters: { token: world.newSecret() } }
      const deployed = world.start()
      await world.time.advance(3 * minute)
      const deployedAtMs = world.time.nowMs
      world.store.mode = 'failing'
      await world.time.advance(150 * second)
      world.store.mode = 'working'
      await world.time.advance(5 * minute)
      expect(stable.map(problemCodes)).toEqual([['SUPERSEDED'], ['SUPERSEDED']])
      expect(problemCodes(deployed)).toEqual([])
      expect(isStable(world)).toBe(true)
      const senders = world.requests.filter(({ atMs }) => atMs > deployedAtMs).map(({ process }) => process)
      expect(senders.every((process) => process === deployed.process)).toBe(true)
    },
  )

  test('stays when the store goes back to a backup from before the deployment', async () => {
    const world = await settledWorld({ users: 20 })
    const stable = nodeOf(world)
    await world.time.advance(20 * minute)
    world.configuration = { ...world.configuration, parameters: { token: world.newSecret() } }
    const deployed = world.start()
    await world.time.advance(3 * minute)
    const restoredAtMs = world.time.nowMs
    world.store.rollBack(5 * minute)
    expect(await world.settled(stable, (keeper) => keeper.sweep())).toMatchObject({ active: 0 })
    await world.time.advance(20 * minute)
    expect(isStable(world)).toBe(true)
    expect(problemCodes(stable)).toEqual(['SUPERSEDED'])
    expect(problemCodes(deployed)).toEqual([])
    const senders = world.requests.filter(({ atMs }) => atMs > restoredAtMs).map(({ process }) => process)
    expect(senders.every((process) => process === deployed.process)).toBe(true)
  })

  test.each(agents(10).map((_, seed) => seed))(
    'that is withdrawn leaves the one before it in charge, not the oldest (seed %i)',
    async (seed) => {
      const world = await settledWorld({ users: 20, processes: 2, seed })
      const oldest = [...world.nodes]
      world.configuration = { ...world.configuration, parameters: { token: world.newSecret() } }
      const before = world.start()
      await world.time.advance((3 + seed) * minute + seed * second)
      const canary = world.start({ ...world.configuration, parameters: { token: world.newSecret() } })
      await world.time.advance((3 + seed) * minute + seed * 3 * second)
      expect(isStable(world)).toBe(false)
      canary.process.kill()
      await world.time.advance(2 * minute)
      expect(isStable(world)).toBe(true)
      await world.time.advance(10 * minute)
      expect(isStable(world)).toBe(true)
      expect(oldest.map(problemCodes)).toEqual([['SUPERSEDED'], ['SUPERSEDED']])
      expect(problemCodes(before)).toEqual([])
    },
  )

  test('of a process that only sweeps ends within two minutes, and not during the sweep', async () => {
    const world = await settledWorld({ users: 5 })
    const stable = nodeOf(world)
    const other = { ...world.configuration, parameters: { token: world.newSecret() } }
    const sweeping = world.start(other, false)
    await world.settled(sweeping, (keeper) => keeper.sweep())
    await world.time.advance(minute)
    expect(problemCodes(stable)).toEqual(['SUPERSEDED'])
    await world.time.advance(90 * second)
    expect(problemCodes(stable)).toEqual([])
    expect(isStable(world)).toBe(true)
  })
})

describe('processes share the work', () => {
  test.each([1, 2, 3, 6])('%i: one request per user and interval, in even shares', async (processes) => {
    const world = await settledWorld({ users: 90, processes })
    await world.time.advance(hour)
    const before = world.requests.length
    const intervals = 4
    await world.time.advance(intervals * 15 * minute)
    const requests = world.requests.slice(before)
    const perUserAndInterval = requests.length / 90 / intervals
    expect(perUserAndInterval).toBeGreaterThan(0.98)
    expect(perUserAndInterval).toBeLessThan(1.05)
    for (const { process } of world.nodes)
      expect(requests.some((each) => each.process === process)).toBe(true)
    expect(world.gaps).toEqual([])
  })

  test('and one that has stopped has no share of the rate', async () => {
    const world = await settledWorld({ users: 100, processes: 2, keeper: { maxRequestsPerSecond: 10 } })
    const [stopped, other] = [nodeOf(world), nodeOf(world, 1)]
    await world.settled(stopped, (keeper) => keeper.stop())
    await world.time.advance(31 * second)
    const startedAtMs = world.time.nowMs
    await world.settled(other, (keeper) => keeper.sweep())
    expect(world.time.nowMs - startedAtMs).toBeLessThan(13 * second)
  })

  test('1,000 ends are restored by three at the rate of one, at every second', async () => {
    const world = await settledWorld({ users: 1_000, processes: 3 })
    await world.time.advance(20 * minute)
    world.end(agents(1_000))
    const endedAtMs = world.time.nowMs
    await world.time.advance(20 * minute)
    expect(world.gaps).toHaveLength(1_000)
    const times = world.requests.map(({ atMs }) => atMs).filter((ms) => ms > endedAtMs)
    const inTheSecondFrom = (ms: number, index: number) =>
      times.slice(index, index + 200).filter((each) => each < ms + second).length
    const most = times.map(inTheSecondFrom).reduce((a, b) => Math.max(a, b))
    expect(most).toBeLessThanOrEqual(50)
    expect(most).toBeGreaterThan(30)
  })
})
