/** How many requests a keeper costs. */
import { expect, test } from 'vitest'
import { hour, minute, second } from './convergence/world.js'
import {
  agents,
  nodeOf,
  problemCodes,
  problemsOf,
  settledWorld,
  statesOf,
  tellStories,
  worldOf,
} from './stories.js'

tellStories()

test.each([
  [1, 'right clocks', 0],
  [3, 'right clocks', 0],
  [2, 'clocks that are set back', -hour],
])('while deliveries arrive %i processes with %s send none', async (processes, _what, byMs) => {
  const world = await settledWorld({ users: 20, processes })
  // Often: with a clock that is set back, a process learns nothing from the records, and needs deliveries of its own.
  const deliver = async (minutes: number) => {
    for (let count = 0; count < 3 * minutes; count++) {
      for (const name of agents(20)) world.callback(name)
      await world.time.advance(minute / 3)
    }
  }
  await deliver(30)
  const before = world.requests.length
  for (const { process } of world.nodes) process.wallSkewMs += byMs
  await deliver(60)
  expect(world.requests.length - before).toBe(0)
  for (const { process, keeper } of world.nodes)
    expect(process.run(() => keeper.subscription('agent0'))).toMatchObject({
      state: 'active',
      lastDeliveryAt: expect.any(Number),
    })
})

test.each([
  ['answers 503', { kind: 'status', status: 503 }],
  ['answers 429 with Retry-After: 1', { kind: 'status', status: 429, retryAfterMs: second }],
  ['answers 500, which may have taken effect', { kind: 'status', status: 500 }],
  ['resets connections', { kind: 'reset' }],
  ['cannot be reached', { kind: 'unreachable' }],
] as const)('two hours of a service that %s cost at most 150 requests', async (_what, outage) => {
  const world = await settledWorld({ users: 60 })
  await world.time.advance(30 * minute)
  const before = world.requests.length
  world.outage = outage
  await world.time.advance(hour)
  const { process, keeper } = nodeOf(world)
  for (const minutes of [20, 40]) {
    // No STRAY: another process may have made the subscription, and no record is read.
    process.run(() => keeper.observe({}, { subscriptionId: -7 }))
    await world.time.advance(minutes * minute)
  }
  expect(problemCodes(nodeOf(world))).toEqual(['SERVICE'])
  expect(world.requests.length - before).toBeLessThanOrEqual(150)
  world.outage = undefined
  await world.time.advance(40 * minute)
  expect(problemCodes(nodeOf(world))).toEqual([])
  expect(new Set(Object.values(statesOf(nodeOf(world))))).toEqual(new Set(['active']))
})

test('users who are always refused are an outage once, and not again, while deliveries prove the others', async () => {
  const world = await settledWorld({ users: 20 })
  for (const name of agents(4)) world.refused.add(name)
  for (let count = 0; count < 4 * 60; count++) {
    for (const name of agents(20).slice(4)) world.callback(name)
    await world.time.advance(minute)
  }
  const outages = world.problems.filter(({ what: { code } }) => code === 'SERVICE')
  expect(outages.map(({ what: { resolved } }) => resolved)).toEqual([false, true])
  expect(problemCodes(nodeOf(world))).toEqual(['REFUSED'])
})

test('a user whom the service refuses is a problem from the third time on, until the service accepts the user or the user leaves', async () => {
  const world = worldOf({ users: 20 })
  for (const name of agents(7)) world.refused.add(name)
  const node = world.start()
  const attemptsFor = (name: string) => world.requestsSince(0).filter((each) => each.endsWith(name)).length
  while (Math.max(...agents(7).map(attemptsFor)) < 3) {
    expect(problemCodes(node)).not.toContain('REFUSED')
    await world.time.advance(second)
  }
  await world.time.advance(second)
  expect(problemCodes(node)).toContain('REFUSED')
  await world.time.advance(20 * minute)
  const refused = problemsOf(node).find(({ code }) => code === 'REFUSED')
  expect(refused?.usernames?.slice().sort()).toEqual(agents(7))
  expect(refused?.message).toMatch(/^("agent\d", ){4}"agent\d" and 2 more: /)
  expect(refused?.error).toMatchObject({ status: 422 })
  for (const name of agents(6)) world.refused.delete(name)
  world.wanted.delete('agent6')
  await world.time.advance(20 * minute)
  expect(problemCodes(node)).toEqual([])
})

test('a user whom the service refuses now and then is no problem', async () => {
  const world = await settledWorld({ users: 20, keeper: { sweepIntervalMs: hour } })
  const sweep = () => world.settled(nodeOf(world), (keeper) => keeper.sweep())
  for (let count = 0; count < 3; count++) {
    world.refused.add('agent0')
    expect((await sweep()).failed).toMatchObject([{ username: 'agent0' }])
    world.refused.delete('agent0')
    expect((await sweep()).failed).toEqual([])
  }
  expect(world.problems).toEqual([])
})

test('an outage is not tested with a name that the client refuses', async () => {
  const world = worldOf({ users: 3, keeper: { usernames: ['\ud800', ...agents(3)] } })
  world.outage = { kind: 'status', status: 503 }
  const node = world.start()
  await world.time.advance(10 * minute)
  const failures = world.story.filter(
    (line) => line.includes('"username":"\\ud800"') && line.includes('failures'),
  )
  expect(failures).toHaveLength(1)
  world.outage = undefined
  await world.time.advance(6 * minute)
  expect(statesOf(node)).toMatchObject({ agent0: 'active', agent1: 'active', agent2: 'active' })
})

test('an outage is tested with a user without a claim who waits for no restore, also before that user is due', async () => {
  const world = await settledWorld({ users: 5, keeper: { sweepIntervalMs: 10 * minute } })
  const sweep = () => world.settled(nodeOf(world), (keeper) => keeper.sweep())
  for (const minutes of [1, 2, 4, 8, 9, 0]) {
    await world.time.advance(minutes * minute)
    world.end(['agent0'])
    await sweep()
  }
  expect(world.gaps).toHaveLength(5)
  await world.time.advance(5 * minute)
  world.callback('agent4')
  world.outage = { kind: 'reset' }
  while (!problemCodes(nodeOf(world)).includes('SERVICE')) await world.time.advance(second)
  world.outage = undefined
  const endedAtMs = world.time.nowMs
  await world.time.advance(30 * second)
  expect(world.requestsSince(endedAtMs)[0]).toMatch(/agent4$/)
})

test('calls that were in flight when an outage began do not lengthen the wait for the first test', async () => {
  const world = worldOf({ users: 8, keeper: { maxRequestsPerSecond: Number.POSITIVE_INFINITY } })
  world.outage = { kind: 'status', status: 429 }
  world.start()
  await world.time.advance(12 * second)
  expect(world.requests).toHaveLength(8 + 1)
})
