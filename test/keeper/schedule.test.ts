/** What the keeper leaves undone, or does in time, while something is wrong: on the model of the service. */
import { describe, expect, test } from 'vitest'
import type { SentRequest } from './model/client.js'
import { problemsAtTheService } from './model/rules/final-state.js'
import { minute, nodeOf, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import { epochMs } from './model/virtual-process.js'

useVirtualProcesses()

const interval = 15 * minute

describe('a store that begins to fail', () => {
  test('between two requests lets the second one end nobody', async () => {
    const world = await settledWorld({ users: 6, keeper: { maxRequestsPerSecond: 1 } })
    for (const name of ['agent1', 'agent2', 'agent3', 'agent4']) world.wantNoLonger(name)
    const { process, keeper } = nodeOf(world)
    process.receive(0, () => void keeper.sweep())
    const isUnsubscribe = ({ kind }: SentRequest) => kind === 'unsubscribe'
    while (!world.requests.some(isUnsubscribe)) await world.time.advance(10)
    world.store.mode = 'failing'
    await world.time.advance(minute)
    expect(world.requests.filter(isUnsubscribe)).toHaveLength(1)
    world.store.mode = 'working'
    await world.time.advance(interval)
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })
})

describe('a process that ends', () => {
  test('and begins again, and dies then, is not believed to have ended cleanly', async () => {
    const world = await settledWorld({ users: 2 })
    const { keeper, process } = nodeOf(world)
    await world.settled(nodeOf(world), () => keeper.stop())
    process.run(() => keeper.start())
    await world.time.advance(minute)
    world.kill(nodeOf(world))
    const before = world.requests.length
    world.start()
    await world.time.advance(3 * minute)
    // Only a proof by id can find out that a create of the dead process took the place of what is recorded.
    const firsts = world.requests.slice(before, before + 2).map(({ kind, username }) => `${kind} ${username}`)
    expect(firsts.sort()).toEqual(['update agent0', 'update agent1'])
  })

  test('has written down its last proof', async () => {
    const world = await settledWorld({ users: 30 })
    await world.time.advance(2 * interval + minute)
    const last = world.requests.at(-1)
    await world.stop(nodeOf(world))
    world.everyOutcome = () => ({ kind: 'unreachable' })
    world.start()
    await world.time.advance(10 * second)
    const { keeper, process } = nodeOf(world)
    const known = process.run(() => keeper.subscription(last?.username ?? ''))
    expect(Math.abs((known?.lastProvenAt ?? 0) - epochMs - (last?.atMs ?? 0))).toBeLessThan(second)
  })

  test('without stopping has written down the proofs of all but the last minutes', async () => {
    const world = await settledWorld({ users: 3 })
    await world.time.advance(3 * interval)
    world.kill(nodeOf(world))
    const diedAtMs = world.time.nowMs
    world.end(['agent1'])
    world.start()
    await world.time.advance(3 * minute)
    const [gap] = world.gaps
    const provenMs = (gap?.what.lastProvenAt ?? 0) - epochMs
    expect(gap?.what.username).toBe('agent1')
    expect(provenMs).toBeLessThanOrEqual(diedAtMs)
    expect(provenMs).toBeGreaterThan(diedAtMs - interval - 6 * minute)
  })
})

describe('the watch', () => {
  test('spreads its requests over the interval', async () => {
    const world = await settledWorld({ users: 30 })
    await world.time.advance(minute)
    for (let count = 0; count < 12; count++) {
      const before = world.requests.length
      await world.time.advance(minute)
      expect(world.requests.length - before).toBeGreaterThanOrEqual(1)
      expect(world.requests.length - before).toBeLessThanOrEqual(4)
    }
  })

  test('looks at everybody once a minute at most, however many ends it finds', async () => {
    const world = await settledWorld({ users: 100 })
    const before = world.requests.length
    // The last of a sweep first, so that each sweep finds another end.
    world.end(['agent99'])
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    for (let count = 98; count > 10; count--) {
      world.end([`agent${count}`])
      await world.time.advance(second)
    }
    expect(world.gaps.length).toBeGreaterThan(20)
    const ofOne = world.requests.slice(before).filter(({ username }) => username === 'agent0')
    expect(ofOne.length).toBeLessThanOrEqual(4)
  })

  test.each([
    ['was stopped for five minutes', 5 * minute, 0],
    ['was on a machine that slept, whose monotonic clock stood still', 0, 10 * minute],
    ['was stopped while its wall clock was set back', 5 * minute, -10 * minute],
  ])('of a process that %s looks at everybody at once', async (_what, suspendedMs, wallMs) => {
    // A single user is not due before an interval has passed.
    const world = await settledWorld({ users: 1 })
    await world.time.advance(minute)
    const { process } = nodeOf(world)
    process.suspend()
    await world.time.advance(suspendedMs)
    process.jumpWallClock(wallMs)
    world.end(['agent0'])
    process.resume()
    await world.time.advance(5 * second)
    expect(problemsAtTheService(world)).toEqual([])
  })
})
