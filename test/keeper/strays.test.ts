/** Deliveries of subscriptions that the keeper does not know, or knows no longer: on the model of the service. */
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

useVirtualProcesses()

describe('a delivery of a subscription', () => {
  test('that the keeper has just ended is no stray', async () => {
    const world = await settledWorld({ users: 3 })
    const [ended] = world.service.activeFor('agent1')
    world.wantNoLonger('agent1')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(world.service.activeFor('agent1')).toEqual([])
    world.observe(ended?.id ?? 0, 0)
    await world.time.advance(5 * minute)
    expect(codes(world)).toEqual([])
  })

  test('that was made by a create without an answer, and replaced since, is no stray', async () => {
    const world = await settledWorld({ users: 1 })
    world.want('newcomer')
    world.nextFates.push({ kind: 'answered' }, { kind: 'silent', effectAfterMs: second })
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(20 * second)
    const [unknown] = world.service.activeFor('newcomer')
    world.observe(unknown?.id ?? 0, 0)
    await world.time.advance(10 * minute)
    expect(unknown?.end?.reason).toBe('replaced')
    expect(codes(world)).toEqual([])
  })

  test.each([0, 7, 14, 21, 28])(
    'that nobody knows is a stray after a minute, and not before, also if the first came %i s after a beat',
    async (seconds) => {
      const world = await settledWorld({ users: 1 })
      await world.time.advance(seconds * second)
      world.observe(999, 0)
      await world.time.advance(minute - second)
      expect(codes(world)).toEqual([])
      await world.time.advance(32 * second)
      expect(codes(world)).toEqual(['STRAY'])
    },
  )

  test('that nobody knows is a stray until none has come for an hour', async () => {
    const world = await settledWorld({ users: 1 })
    for (let count = 0; count < 4; count++) {
      world.observe(999, 0)
      await world.time.advance(30 * minute)
    }
    expect(codes(world)).toEqual(['STRAY'])
    await world.time.advance(29 * minute)
    expect(codes(world)).toEqual(['STRAY'])
    await world.time.advance(3 * minute)
    expect(codes(world)).toEqual(['STRAY', 'STRAY is over'])
  })

  test('that a process made whose store was lost is reported as one that may be the keeper’s own', async () => {
    const world = await settledWorld({ users: 3 })
    const [lost] = world.service.activeFor('agent2')
    world.kill(nodeOf(world))
    world.forget()
    world.wantNoLonger('agent2')
    world.start()
    await world.time.advance(4 * minute)
    world.observe(lost?.id ?? 0, 0)
    await world.time.advance(3 * minute)
    expect(world.problems.map(({ what }) => what.code)).toEqual(['STRAY'])
    expect(world.problems[0]?.what.message).toMatch(
      /may have made it all the same, and lost .* what was in its store.*client\.unsubscribe\(\d+\)` and then `sweep\(\)`/,
    )
  })

  test('of subscription 0, which `notification-subscriber check` posts, is no stray', async () => {
    const world = await settledWorld({ users: 1 })
    world.observe(0, 0)
    await world.time.advance(5 * minute)
    expect(codes(world)).toEqual([])
  })

  test('that nobody knows is one of a thousand at most: who sends more makes them up', async () => {
    const world = await settledWorld({ users: 1 })
    for (let id = 5_000; id < 7_000; id++) world.observe(id, 0)
    await world.time.advance(3 * minute)
    expect(world.problems).toHaveLength(1_000)
    await world.time.advance(hour)
    expect(nodeOf(world).process.run(() => nodeOf(world).keeper.status()).problems).toEqual([])
  })

  test('of a user who was restored lets the receiver be believed again a minute after the last end was found', async () => {
    const world = await settledWorld({ users: 3 })
    world.end(agents(3))
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(codes(world)).toContain('RECEIVER_SUSPECTED')
    world.callback('agent1')
    await world.time.advance(2 * minute)
    expect(codes(world)).toContain('RECEIVER_SUSPECTED is over')
  })
})

describe('a delivery that arrives where another process keeps the roster', () => {
  test('of a subscription that this process had made, and the other has replaced, is no stray', async () => {
    const world = await settledWorld({ users: 2 })
    const first = nodeOf(world)
    const [made] = world.service.activeFor('agent0')
    world.forget()
    world.start()
    await world.time.advance(3 * minute)
    expect(made?.end?.reason).toBe('replaced')
    first.process.receive(0, () => first.keeper.observe({}, { subscriptionId: made?.id ?? 0 }))
    await world.time.advance(5 * minute)
    expect(codes(world)).not.toContain('STRAY')
  })

  test('of a subscription that the other makes without an answer, and then replaces, is no stray', async () => {
    const world = await settledWorld({ users: 1 })
    const other = world.start()
    await world.time.advance(20 * second)
    world.want('newcomer')
    world.nextFates.push({ kind: 'answered' }, { kind: 'silent', effectAfterMs: second })
    nodeOf(world).process.receive(0, () => void nodeOf(world).keeper.sweep())
    await world.time.advance(20 * second)
    const [unknown] = world.service.activeFor('newcomer')
    other.process.receive(0, () => other.keeper.observe({}, { subscriptionId: unknown?.id ?? 0 }))
    await world.time.advance(10 * minute)
    expect(unknown?.end?.reason).toBe('replaced')
    expect(codes(world)).toEqual([])
  })

  test('of a subscription whose record is missing from the store is a stray in the end', async () => {
    const world = await settledWorld({ users: 2 })
    const first = nodeOf(world)
    const [made] = world.service.activeFor('agent1')
    const other = world.start()
    await world.time.advance(20 * second)
    world.kill(first)
    world.wantNoLonger('agent1')
    const chunk = other.process.run(() => world.store.for(other.process).delete('coaching:chunk:0'))
    await Promise.all([chunk, world.time.advance(3 * minute)])
    for (let count = 0; count < 6; count++) {
      other.process.receive(0, () => other.keeper.observe({}, { subscriptionId: made?.id ?? 0 }))
      await world.time.advance(5 * minute)
    }
    expect(made?.end).toBeUndefined()
    expect(codes(world)).toContain('STRAY')
  })
})
