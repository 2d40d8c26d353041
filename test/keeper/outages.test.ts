/** What is an outage, what is not, and how one is reported: on the model of the service. */
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
import type { World } from './model/world.js'

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

  test('of another kind than before is reported as such, and the first as resolved', async () => {
    const world = await settledWorld({ users: 10 })
    world.everyOutcome = () => ({ kind: 'status', status: 503 })
    await world.time.advance(hour)
    expect(codes(world)).toEqual(['SERVICE'])
    world.everyOutcome = () => ({ kind: 'status', status: 403 })
    await world.time.advance(20 * minute)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE resolved', 'CREDENTIALS'])
    world.everyOutcome = undefined
    await world.time.advance(20 * minute)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE resolved', 'CREDENTIALS', 'CREDENTIALS resolved'])
  })

  test('is tested with another user each time', async () => {
    const world = await settledWorld({ users: 10 })
    world.everyOutcome = () => ({ kind: 'status', status: 503 })
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
    expect(codes(world)).not.toContain('RECEIVER_SUSPECTED resolved')
    await world.time.advance(minute + 35 * second)
    expect(codes(world).at(-1)).toBe('RECEIVER_SUSPECTED resolved')
  })
})

const unavailable = { kind: 'status', status: 503 } as const

describe('an outage', () => {
  test('of which every fourth request gets through is reported once, and resolved after a calm minute', async () => {
    const world = await settledWorld({ users: 60, keeper: { sweepIntervalMs: minute } })
    let requests = 0
    world.everyOutcome = () => (requests++ % 4 < 3 ? unavailable : { kind: 'answered' })
    await world.time.advance(10 * minute)
    expect(codes(world)).toEqual(['SERVICE'])
    world.everyOutcome = undefined
    await world.time.advance(7 * minute)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE resolved'])
  })

  test('of a few seconds is waited for by a sweep, which then goes on', async () => {
    const world = await settledWorld({ users: 2 })
    for (let count = 0; count < 40; count++) world.want(`newcomer${count}`)
    const endsAtMs = world.time.nowMs + 4 * second
    world.everyOutcome = () => (world.time.nowMs < endsAtMs ? unavailable : { kind: 'answered' })
    const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(report).toMatchObject({ wanted: 42, active: 42, created: 40, failed: [] })
  })

  test('that lasts is not waited for by a sweep for more than a minute or so', async () => {
    const world = await settledWorld({ users: 20 })
    world.everyOutcome = () => unavailable
    const startedAt = world.time.nowMs
    const { failed } = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(failed).toHaveLength(20)
    expect(world.time.nowMs - startedAt).toBeLessThan(2 * minute)
  })
})

test('a receiver whose ends are found one after the other is suspected once, however early a delivery comes', async () => {
  const world = await settledWorld({ users: 300, keeper: { maxRequestsPerSecond: 5 } })
  world.end(['agent0', 'agent150', 'agent299'])
  beginSweep(world)
  await world.time.advance(5 * second)
  world.callback('agent0')
  await world.time.advance(2 * minute)
  world.callback('agent299')
  await world.time.advance(3 * minute)
  const reported = codes(world).filter((code) => code.startsWith('RECEIVER_SUSPECTED'))
  expect(reported).toEqual(['RECEIVER_SUSPECTED', 'RECEIVER_SUSPECTED', 'RECEIVER_SUSPECTED resolved'])
})

test('a sweep that waits for the end of an outage can be stopped', async () => {
  const world = await settledWorld({ users: 20 })
  world.everyOutcome = () => unavailable
  beginSweep(world)
  await world.time.advance(8 * second)
  const startedAt = world.time.nowMs
  await world.settled(nodeOf(world), (keeper) => keeper.stop())
  expect(world.time.nowMs - startedAt).toBeLessThan(15 * second)
})

test('a keeper that waits for a dead process stops within seconds', async () => {
  const world = await settledWorld({ users: 2 })
  world.kill(nodeOf(world))
  const node = world.start()
  await world.time.advance(5 * second)
  const startedAt = world.time.nowMs
  await world.settled(node, (keeper) => keeper.stop())
  expect(world.time.nowMs - startedAt).toBeLessThan(15 * second)
})

test('a sweep begins with those who have no subscription yet', async () => {
  const world = await settledWorld({ users: 200, keeper: { maxRequestsPerSecond: 10 } })
  world.want('newcomer')
  const before = world.requests.length
  beginSweep(world)
  await world.time.advance(2 * second)
  expect(world.requests.slice(before).map(({ username }) => username)).toContain('newcomer')
})

test('somebody else’s subscription is left alone by the process after one that was killed, if that is to be reported', async () => {
  const world = await settledWorld({ users: 2, keeper: { existing: 'report' } })
  world.subscribeSomebodyElse(['agent0'])
  await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  world.want('newcomer')
  world.subscribeSomebodyElse(['newcomer'])
  await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  world.kill(nodeOf(world))
  world.start()
  await world.time.advance(20 * minute)
  const owners = world.service.activeFor('newcomer').map(({ createdBy }) => createdBy)
  expect(owners).toEqual(['somebody else'])
})

describe('one user for whom the service refuses everything', () => {
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
    world.nextOutcomes.push({ kind: 'status', status: 503 })
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

/** Begins a sweep that nothing waits for: it may be under way when the test ends. */
function beginSweep(world: World): void {
  const { keeper, process } = nodeOf(world)
  process.run(() => {
    keeper.sweep().catch(() => {})
  })
}
