/** The calls of a keeper: sweep, start, stop, unsubscribeAll. */
import { ConnectionError, OutcomeUnknownError } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { hour, minute, second } from './convergence/world.js'
import { agents, nodeOf, settledWorld, statesOf, swept, tellStories, worldOf } from './stories.js'

tellStories()

describe('a sweep', () => {
  test('costs no more requests if it is called several times at once, and each call counts', async () => {
    const world = worldOf({ users: 4 })
    const node = world.start(undefined, false)
    let progress = 0
    const onProgress = () => progress++
    const reports = await world.settled(node, (keeper) =>
      Promise.all([keeper.sweep({ onProgress }), keeper.sweep({ onProgress }), keeper.sweep()]),
    )
    expect(world.requests).toHaveLength(4)
    expect(progress).toBe(8)
    expect(reports).toMatchObject([{ active: 4 }, { active: 4 }, { active: 4 }])
  })

  test('that begins while another one runs proves every user again, and both count', async () => {
    const world = worldOf({ users: 60, keeper: { maxRequestsPerSecond: 20 } })
    const node = world.start(undefined, false)
    const first = node.process.run(() => node.keeper.sweep())
    await world.time.advance(2 * second)
    const second_ = await world.settled(node, (keeper) => keeper.sweep())
    expect(await first).toMatchObject({ wanted: 60, active: 60, created: 60 })
    expect(second_).toMatchObject({ wanted: 60, active: 60, failed: [] })
    expect(world.requests.length).toBeGreaterThan(80)
    expect(world.time.nowMs).toBeLessThan(30 * second)
  })

  test('does not count a proof that was sent before the sweep began', async () => {
    const world = await settledWorld({ users: 1 })
    const node = nodeOf(world)
    world.nextOutcomes.push({ kind: 'late', effectAfterMs: 0, answerAfterMs: 5 * second })
    void node.process.run(() => node.keeper.sweep())
    await world.time.advance(2 * second)
    world.end(['agent0'])
    const report = await world.settled(node, (keeper) => keeper.sweep())
    expect(report).toMatchObject({ active: 1, restored: 1 })
  })

  test('believes no delivery that arrives meanwhile: it may be the third failure', async () => {
    const world = worldOf({ users: 8, keeper: { concurrency: 1, maxRequestsPerSecond: 0.5 } })
    const node = world.start(undefined, false)
    await world.settled(node, (keeper) => keeper.sweep())
    const sweeping = node.process.run(() => node.keeper.sweep())
    await world.time.advance(second)
    for (const name of agents(8)) world.callback(name)
    await world.time.advance(second / 2)
    world.end(agents(8))
    await world.time.advance(minute)
    // One user was proven before.
    expect(await sweeping).toMatchObject({ active: 8, restored: 7 })
  })

  test('begins with the users who have no subscription', async () => {
    const world = await settledWorld({ users: 20, keeper: { concurrency: 1 } })
    const newcomers = ['newcomer0', 'newcomer1', 'newcomer2']
    for (const name of newcomers) world.want(name)
    const before = world.requests.length
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const first = world.requests.slice(before, before + 6).map(({ username }) => username)
    expect(first).toEqual(expect.arrayContaining(newcomers))
  })

  test.each([
    ['unreachable', ConnectionError],
    ['reset', OutcomeUnknownError],
  ] as const)(
    'waits a minute for a service that is down (%s), and the next one begins anew',
    async (kind, cause) => {
      const world = worldOf({ users: 4, isStoreSynchronous: true })
      world.outage = { kind }
      const { node, report } = await swept(world)
      expect(report).toMatchObject({ wanted: 4, active: 0, problems: [{ code: 'SERVICE' }] })
      expect(report.failed.map(({ username }) => username).sort()).toEqual(agents(4))
      for (const { error } of report.failed) expect(error).toBeInstanceOf(cause)
      expect(world.time.nowMs).toBeGreaterThan(55 * second)
      expect(world.time.nowMs).toBeLessThan(90 * second)
      world.outage = undefined
      await world.time.advance(hour)
      expect(await world.settled(node, (keeper) => keeper.sweep())).toMatchObject({ active: 4, failed: [] })
    },
  )

  test('believes a service that says how soon it may be asked again', async () => {
    const world = worldOf({ users: 1 })
    world.nextOutcomes.push({ kind: 'status', status: 429, retryAfterMs: second })
    const node = world.start(undefined, false)
    await world.settled(node, (keeper) => keeper.sweep())
    expect(world.time.nowMs).toBeLessThan(5 * second)
  })

  test('gives up a user if the service asks to wait longer than a minute', async () => {
    const world = worldOf({ users: 4, keeper: { concurrency: Number.MAX_SAFE_INTEGER } })
    world.nextOutcomes.push({ kind: 'status', status: 429, retryAfterMs: hour })
    const { report } = await swept(world)
    expect(report).toMatchObject({ active: 3, failed: [{ error: expect.any(Error) }] })
    expect(world.time.nowMs).toBeLessThan(minute)
  })

  test('that is stopped reports the users it did not reach', async () => {
    const world = worldOf({ users: 200, keeper: { maxRequestsPerSecond: 20 } })
    const node = world.start(undefined, false)
    const sweeping = node.process.run(() => node.keeper.sweep())
    await world.time.advance(3 * second)
    await world.settled(node, (keeper) => keeper.stop())
    const { active, failed } = await sweeping
    expect(active + failed.length).toBe(200)
    expect(failed.length).toBeGreaterThan(50)
    const before = world.requests.length
    await world.time.advance(minute)
    expect(world.requests).toHaveLength(before)
  })
})

describe('a keeper on watch', () => {
  test('does not prove again a user that a sweep has just proven', async () => {
    const world = worldOf({ users: 5 })
    const node = world.start(undefined, false)
    await world.settled(node, (keeper) => keeper.sweep())
    node.process.run(() => node.keeper.start())
    await world.time.advance(10 * minute)
    expect(world.requests).toHaveLength(5)
  })

  test('that was stopped sends nothing, and continues when it is started again', async () => {
    const world = await settledWorld({ users: 2 })
    const node = nodeOf(world)
    await world.settled(node, (keeper) => keeper.stop())
    const stoppedAtMs = world.time.nowMs
    world.end(['agent0'])
    await world.time.advance(40 * minute)
    expect(world.requestsSince(stoppedAtMs)).toEqual([])
    node.process.run(() => node.keeper.start())
    await world.time.advance(minute)
    expect(world.causes).toEqual(['agent0 ended'])
    expect(statesOf(node)).toEqual({ agent0: 'active', agent1: 'active' })
  })

  test('that is started or swept again before its stop has ended works at once', async () => {
    const world = worldOf({ users: 3 })
    world.outage = { kind: 'late', effectAfterMs: 0, answerAfterMs: 9 * second }
    const node = world.start(undefined, false)
    const begun = node.process.run(() => node.keeper.sweep())
    await world.time.advance(second)
    const stopping = node.process.run(() => node.keeper.stop())
    world.outage = undefined
    node.process.run(() => node.keeper.start())
    const report = await world.settled(node, (keeper) => keeper.sweep())
    expect(report).toMatchObject({ wanted: 3, active: 3, failed: [] })
    expect((await begun).failed).toHaveLength(3)
    await stopping
    world.end(['agent0'])
    await world.time.advance(20 * minute)
    expect(world.causes).toEqual(['agent0 ended'])
  })

  test('has stopped without the answer of a roster that hangs', async () => {
    const world = worldOf({ users: 2 })
    world.rosterMode = 'hanging'
    const node = world.start()
    await world.time.advance(second)
    await world.settled(node, (keeper) => keeper.stop())
    expect(world.time.nowMs).toBeLessThan(13 * second)
  })

  test('that was stopped while the service hangs sends nothing more, and has stopped in ten seconds', async () => {
    const world = worldOf({ users: 100 })
    world.outage = { kind: 'late', effectAfterMs: 0 }
    const node = world.start()
    await world.time.advance(3 * second)
    const before = world.requests.length
    await world.settled(node, (keeper) => keeper.stop())
    // After ten seconds the calls in flight are aborted.
    expect(world.time.nowMs).toBeLessThan(13.5 * second)
    expect(world.problems).toEqual([])
    world.outage = undefined
    await world.time.advance(10 * minute)
    expect(world.requests).toHaveLength(before)
    node.process.run(() => node.keeper.start())
    await world.time.advance(5 * minute)
    expect(world.service.active('keeper')).toHaveLength(100)
  })

  test('with a low rate has stopped in a second, and what was not sent takes nothing of the rate', async () => {
    const world = worldOf({ users: 20, keeper: { maxRequestsPerSecond: 0.1 } })
    const node = world.start()
    await world.time.advance(15 * second)
    await world.settled(node, (keeper) => keeper.stop())
    expect(world.time.nowMs).toBeLessThan(17 * second)
    expect(world.requests).toHaveLength(2)
    node.process.run(() => node.keeper.start())
    await world.time.advance(90 * second)
    expect(world.requests.length).toBeGreaterThan(2)
  })

  test('gives calls in flight time for their answer when it is stopped', async () => {
    const world = worldOf({ users: 1 })
    world.outage = { kind: 'late', effectAfterMs: 0, answerAfterMs: 9 * second }
    const node = world.start()
    await world.time.advance(second)
    await world.settled(node, (keeper) => keeper.stop())
    expect(node.keeper.subscription('agent0')?.subscriptionId).toBe(world.ids.agent0)
  })

  test('keeps to its rate and its concurrency', async () => {
    const world = worldOf({ users: 300, keeper: { maxRequestsPerSecond: 30, concurrency: 3 } })
    world.start()
    await world.time.advance(5 * second)
    expect(world.requests.length).toBeLessThanOrEqual(5 * 30 + 3)
    expect(world.requests.length).toBeGreaterThan(60)
    world.outage = { kind: 'late', effectAfterMs: 0, answerAfterMs: 9 * second }
    const before = world.requests.length
    await world.time.advance(8 * second)
    expect(world.requests.length - before).toBeLessThanOrEqual(3)
  })
})

test('two processes that start together subscribe each user once', async () => {
  const world = worldOf({ users: 30 })
  const nodes = [world.start(), world.start()]
  await world.time.advance(minute)
  expect(world.requests.length).toBeLessThanOrEqual(32)
  expect(world.service.subscriptions).toHaveLength(30)
  for (const node of nodes) expect(Object.values(statesOf(node))).toEqual(agents(30).map(() => 'active'))
})

test('unsubscribeAll ends the watch and every subscription that the keeper made, and no other', async () => {
  const world = await settledWorld({ users: 3 })
  const other = { ...world.configuration, usernames: ['other'], recreateIfExists: false, parameters: {} }
  world.service.create(other, 'another app')
  const report = await world.settled(nodeOf(world), (keeper) => keeper.unsubscribeAll())
  expect(report).toEqual({
    wanted: 0,
    active: 0,
    created: 0,
    restored: 0,
    removed: 3,
    failed: [],
    problems: [],
  })
  await world.time.advance(30 * minute)
  expect(world.ids).toEqual({})
  expect(world.service.active('another app')).toHaveLength(1)
})
