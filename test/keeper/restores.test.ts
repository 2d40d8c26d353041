/** What the service ended is found and restored; deliveries are proof. */
import { describe, expect, test } from 'vitest'
import { epochMs } from './convergence/virtual-process.js'
import { defaultConfiguration, hour, minute, second } from './convergence/world.js'
import { agents, nodeOf, problemCodes, settledWorld, statesOf, tellStories } from './stories.js'

tellStories()

test('the first end that is found is hardly the only one: every user is proven anew', async () => {
  const world = await settledWorld({ users: 50 })
  await world.time.advance(20 * minute)
  world.end(agents(50))
  await world.time.advance(15 * minute)
  expect(world.gaps).toHaveLength(50)
  const times = world.gaps.map(({ atMs }) => atMs)
  expect(Math.max(...times) - Math.min(...times)).toBeLessThan(minute)
  expect(problemCodes(nodeOf(world))).toEqual(['RECEIVER_SUSPECTED'])
})

test('a subscription that ends again and again is restored after 1, 2, 4, 8, 15 minutes', async () => {
  const world = await settledWorld({ users: 1, keeper: { sweepIntervalMs: minute } })
  for (let round = 0; round < 8 * 60; round++) {
    world.end(['agent0'])
    await world.time.advance(10 * second)
  }
  const waits = world.gaps.map(({ atMs }, index) => (atMs - (world.gaps[index - 1]?.atMs ?? 0)) / minute)
  expect(waits.slice(1, 7).map(Math.round)).toEqual([1, 2, 4, 8, 15, 15])
  expect(nodeOf(world).keeper.subscription('agent0')?.restoredCount).toBe(world.gaps.length)
})

test('a restored subscription that ends again is found when it may be restored, and not an interval later', async () => {
  const world = await settledWorld({ users: 1 })
  world.end(['agent0'])
  await world.settled(nodeOf(world), (keeper) => keeper.sweep())
  for (let count = 0; count < 2; count++) {
    world.end(['agent0'])
    await world.time.advance(3 * minute)
  }
  expect(world.gaps).toHaveLength(3)
})

test('while the next restore waits, a sweep reports the user as failed', async () => {
  const world = await settledWorld({ users: 1, configuration: { ...defaultConfiguration, parameters: {} } })
  const node = nodeOf(world)
  world.end(['agent0'])
  expect(await world.settled(node, (keeper) => keeper.sweep())).toMatchObject({ active: 1, restored: 1 })
  world.end(['agent0'])
  const report = await world.settled(node, (keeper) => keeper.sweep())
  expect(report).toMatchObject({ wanted: 1, active: 0, failed: [{ username: 'agent0' }] })
})

test('a service that is out while every user waits for a restore is tried when the waits end', async () => {
  const world = await settledWorld({ users: 4 })
  const node = nodeOf(world)
  for (let count = 0; count < 2; count++) {
    world.end(agents(4))
    await world.settled(node, (keeper) => keeper.sweep())
  }
  expect(world.gaps).toHaveLength(4)
  world.outage = { kind: 'unreachable' }
  const outSinceMs = world.time.nowMs
  await world.time.advance(50 * second)
  expect(world.requestsSince(outSinceMs)).toEqual([])
  expect(problemCodes(node)).toEqual(['RECEIVER_SUSPECTED'])
  await world.time.advance(9 * minute)
  expect(problemCodes(node)).toEqual(['RECEIVER_SUSPECTED', 'SERVICE'])
  expect(world.requestsSince(outSinceMs).length).toBeLessThan(20)
  world.outage = undefined
  await world.time.advance(5 * minute)
  expect(problemCodes(node)).toEqual(['RECEIVER_SUSPECTED'])
  expect(world.service.active('keeper')).toHaveLength(4)
  expect(world.gaps).toHaveLength(8)
})

describe('a delivery', () => {
  test('ends the wait for the next restore, and the suspicion', async () => {
    const world = await settledWorld({ users: 1 })
    for (let count = 0; count < 4; count++) {
      world.end(['agent0'])
      await world.settled(nodeOf(world), (keeper) => keeper.sweep())
      await world.time.advance(9 * minute)
    }
    expect(problemCodes(nodeOf(world))).toEqual(['RECEIVER_SUSPECTED'])
    world.callback('agent0')
    await world.time.advance(second)
    expect(problemCodes(nodeOf(world))).toEqual([])
    world.end(['agent0'])
    const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(report).toMatchObject({ restored: 1, active: 1 })
  })

  test('of an unknown subscription is a STRAY after one interval, until no more come', async () => {
    const world = await settledWorld({ users: 1 })
    const { process, keeper } = nodeOf(world)
    for (let count = 0; count < 18; count++) {
      process.run(() => keeper.observe({}, { subscriptionId: -7 }))
      await world.time.advance(minute)
      if (count < 14) expect(problemCodes(nodeOf(world))).toEqual([])
    }
    expect(process.run(() => keeper.status()).problems).toMatchObject([{ code: 'STRAY', subscriptionId: -7 }])
    await world.time.advance(2 * hour)
    expect(problemCodes(nodeOf(world))).toEqual([])
  })

  test('of a subscription that the keeper has just replaced, or of the id 0, is none', async () => {
    const world = await settledWorld({ users: 1 })
    const { process, keeper } = nodeOf(world)
    const [former = 0] = Object.values(world.ids)
    world.end(['agent0'])
    await world.settled(nodeOf(world), (kept) => kept.sweep())
    for (let count = 0; count < 14; count++) {
      for (const subscriptionId of [former, 0, Number.NaN]) {
        process.run(() => keeper.observe({}, { subscriptionId }))
      }
      await world.time.advance(minute)
    }
    expect(problemCodes(nodeOf(world))).toEqual(['RECEIVER_SUSPECTED'])
  })
})

test('the receiver is suspected until the restored subscription has lasted', async () => {
  const world = await settledWorld({ users: 1 })
  world.end(['agent0'])
  await world.time.advance(16 * minute)
  expect(problemCodes(nodeOf(world))).toEqual(['RECEIVER_SUSPECTED'])
  await world.time.advance(33 * minute)
  expect(problemCodes(nodeOf(world))).toEqual([])
})

test.each(['sleep', 'suspend'] as const)(
  'after a %s every user is proven anew, and a delivery that waited proves nothing',
  async (how) => {
    const world = await settledWorld({ users: 5 })
    await world.time.advance(2 * minute)
    const { process, keeper } = nodeOf(world)
    const { agent0: subscriptionId = 0 } = world.ids
    process[how]()
    process.receive(0, () => keeper.observe({}, { subscriptionId }))
    world.end(agents(5))
    const endedAt = epochMs + world.time.nowMs
    await world.time.advance(10 * minute)
    process.resume()
    await world.time.advance(minute)
    const proofs = world.gaps.map(({ what: { lastProvenAt = Number.NaN } }) => lastProvenAt)
    expect(proofs).toHaveLength(5)
    expect(Math.max(...proofs)).toBeLessThan(endedAt)
  },
)

test('a user is `unproven` two intervals after the last proof, and `failing` while calls fail', async () => {
  const world = await settledWorld({ users: 1 })
  world.store.mode = 'failing'
  await world.time.advance(28 * minute)
  expect(statesOf(nodeOf(world))).toEqual({ agent0: 'active' })
  await world.time.advance(3 * minute)
  expect(statesOf(nodeOf(world))).toEqual({ agent0: 'unproven' })
  expect(problemCodes(nodeOf(world))).toEqual(['STORE'])
  world.store.mode = 'working'
  world.outage = { kind: 'status', status: 503 }
  await world.time.advance(20 * minute)
  expect(statesOf(nodeOf(world))).toEqual({ agent0: 'failing' })
  expect(problemCodes(nodeOf(world))).toEqual(['SERVICE'])
  world.outage = { kind: 'no-token' }
  await world.time.advance(20 * minute)
  expect(problemCodes(nodeOf(world))).toEqual(['CREDENTIALS'])
})

describe('a change of the configuration', () => {
  test('of the callback URL ends the old subscription and creates the new one: a gap of two calls', async () => {
    const world = await settledWorld({ users: 2 })
    nodeOf(world).process.kill()
    world.end(['agent1'])
    const moved = { ...world.configuration, callbackUrl: 'https://new.example.com/' }
    world.start(moved)
    await world.time.advance(minute)
    // Also the first gap of the user whose subscription had ended begins with the last proof.
    expect(world.causes).toEqual(expect.arrayContaining(['agent0 changed', 'agent1 changed']))
    for (const name of agents(2)) {
      const first = world.gaps.find(({ what }) => what.username === name)?.what
      expect((first?.restoredAt ?? 0) - (first?.lastProvenAt ?? 0)).toBeGreaterThan(minute)
    }
    const urls = world.service.active('keeper').map(({ callbackUrl }) => callbackUrl)
    expect(urls).toEqual([moved.callbackUrl, moved.callbackUrl])
    expect(problemCodes(nodeOf(world))).toEqual([])
  })

  test('that takes a parameter away recreates each subscription, because no update does that', async () => {
    const configuration = {
      notificationTypes: ['behavioral'],
      callbackUrl: 'https://app.example.com/',
      parameters: { Token: 'a', old: 'b' },
    } as const
    const world = await settledWorld({ users: 2, configuration })
    nodeOf(world).process.kill()
    world.isConfigurationNew = true
    world.start({ ...configuration, parameters: { Token: 'a' } })
    await world.time.advance(minute)
    expect(world.causes.sort()).toEqual(['agent0 changed', 'agent1 changed'])
    const values = world.service.active('keeper').map(({ parameters }) => parameters)
    expect(values).toEqual([{ Token: 'a' }, { Token: 'a' }])
    const before = world.requests.length
    await world.time.advance(12 * minute)
    expect(world.requests.length).toBe(before)
  })

  test('is noticed in a record before the next look at the configuration: no value is changed back', async () => {
    const world = await settledWorld({ users: 10, keeper: { sweepIntervalMs: 5 * second } })
    const startedAtMs = world.time.nowMs
    world.start({ ...world.configuration, parameters: { token: world.newSecret() } })
    await world.time.advance(minute)
    const updates = world.requests.filter(
      ({ atMs, kind }) => kind === 'update' && atMs > startedAtMs + 2 * second,
    )
    expect(updates.filter(({ process }) => process.name === 'process 1')).toEqual([])
  })
})
