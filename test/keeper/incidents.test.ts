/** What incidents cost, and how fast they are over: in virtual time, on the model of the service. */
import { describe, expect, test } from 'vitest'
import type { Fate } from './model/fates.js'
import { problemsAtTheService } from './model/invariants.js'
import { agents, hour, minute, settledWorld, useVirtualProcesses } from './model/setup.js'
import { World } from './model/world.js'

useVirtualProcesses()

const outages: [string, Fate][] = [
  ['answers 503', { kind: 'status', status: 503 }],
  ['answers 500', { kind: 'status', status: 500 }],
  ['answers 500 although it did what was asked', { kind: 'status', status: 500, effectAfterMs: 10 }],
  ['refuses the token', { kind: 'status', status: 401 }],
  ['forbids everything', { kind: 'status', status: 403 }],
  ['cannot be reached', { kind: 'unreachable' }],
  ['does not answer', { kind: 'silent' }],
  ['breaks every connection', { kind: 'reset' }],
  ['gets no token', { kind: 'no-token' }],
]

describe('an outage of two hours', () => {
  for (const [what, fate] of outages) {
    test.each([3, 40])(
      `in which the service ${what} costs at most 150 requests for %i users`,
      async (users) => {
        const world = await settledWorld({ users })
        const before = world.requests.length
        world.weather = () => fate
        await world.time.advance(2 * hour)
        expect(world.requests.length - before).toBeLessThanOrEqual(150)
        expect(world.problems.map(({ what: { code, resolved } }) => ({ code, resolved }))).toContainEqual({
          code:
            fate.kind === 'no-token' || ('status' in fate && fate.status < 500) ? 'CREDENTIALS' : 'SERVICE',
          resolved: false,
        })
        world.weather = undefined
        await world.time.advance(16 * minute)
        expect(problemsAtTheService(world)).toEqual([])
        expect(world.violations).toEqual([])
      },
    )
  }

  test('costs no more for many users', async () => {
    const world = await settledWorld({ users: 1_000 })
    const before = world.requests.length
    world.weather = () => ({ kind: 'status', status: 503 })
    await world.time.advance(2 * hour)
    expect(world.requests.length - before).toBeLessThanOrEqual(150)
  })

  test('which begins before the first process starts costs no more', async () => {
    const world = new World({ seed: 2, usernames: agents(500) })
    world.weather = () => ({ kind: 'status', status: 503 })
    world.start()
    await world.time.advance(2 * hour)
    expect(world.requests.length).toBeLessThanOrEqual(150)
  })
})

describe('ends', () => {
  test.each([
    [10, 50],
    [500, 50],
    [120, 2],
  ])(
    'of all %i users at once are repaired within a minute and users divided by %i a second',
    async (users, maxRequestsPerSecond) => {
      const world = await settledWorld({ users, keeper: { maxRequestsPerSecond } })
      await world.time.advance(minute + (users / maxRequestsPerSecond) * 1_000)
      world.end(agents(users))
      const endedAtMs = world.time.nowMs
      await world.time.advance(16 * minute)
      const restored = world.service.active().map(({ createdAtMs }) => createdAtMs)
      expect(restored).toHaveLength(users)
      const firstAtMs = Math.min(...restored)
      expect(firstAtMs - endedAtMs).toBeLessThanOrEqual(15 * minute)
      expect(Math.max(...restored) - firstAtMs).toBeLessThanOrEqual(
        minute + (users / maxRequestsPerSecond) * 1_000,
      )
      expect(world.gaps).toHaveLength(users)
      expect(world.violations).toEqual([])
    },
  )

  test('of a receiver that stays broken are repaired ever more rarely, down to once in 15 minutes, and for ever', async () => {
    const world = await settledWorld({ users: 5 })
    const endAllSoon = () => {
      world.end(agents(5))
      world.time.schedule(5_000, endAllSoon)
    }
    endAllSoon()
    await world.time.advance(6 * hour)
    expect(world.problems.filter(({ what }) => what.code === 'RECEIVER_SUSPECTED')).not.toHaveLength(0)
    for (const name of agents(5)) {
      const times = world.service.subscriptions
        .filter(({ usernames }) => usernames.includes(name))
        .map(({ createdAtMs }) => createdAtMs)
      const waits = times.slice(2).map((time, index) => time - (times[index + 1] as number))
      // The first restore is immediate; from then on each wait is as long as the one before, or longer, up to the last.
      for (const [index, wait] of waits.entries()) {
        expect(wait).toBeGreaterThanOrEqual(Math.min(minute * 0.9, 13 * minute))
        if (index > 6) expect(wait).toBeGreaterThanOrEqual(13 * minute)
        expect(wait).toBeLessThanOrEqual(17 * minute)
      }
      expect(waits.length).toBeGreaterThan(15)
      expect(waits.length).toBeLessThan(40)
    }
  })

  test('that come with the first one found are told with it: the receiver is suspected at once', async () => {
    const world = await settledWorld({ users: 20 })
    world.end(['agent7'])
    await world.time.advance(16 * minute)
    const [gap] = world.gaps
    const suspected = world.problems.find(({ what }) => what.code === 'RECEIVER_SUSPECTED')
    expect(gap?.what.username).toBe('agent7')
    expect(Math.abs((suspected?.atMs ?? 0) - (gap?.atMs ?? 0))).toBeLessThan(2_000)
  })
})

describe('a quiet time', () => {
  test('costs one request for each user in each interval, and nothing is told', async () => {
    const world = await settledWorld({ users: 30 })
    const { gaps, problems, requests } = world
    const before = requests.length
    await world.time.advance(2 * hour)
    const kinds = requests.slice(before).map(({ kind, effect }) => `${kind} ${effect}`)
    expect(new Set(kinds)).toEqual(new Set(['create 409', 'update 200']))
    expect(kinds.length).toBeGreaterThanOrEqual(30 * 7.5)
    expect(kinds.length).toBeLessThanOrEqual(30 * 8.5)
    expect(gaps).toEqual([])
    expect(problems).toEqual([])
  })

  test('in which deliveries come costs fewer requests', async () => {
    const world = await settledWorld({ users: 30 })
    const before = world.requests.length
    const callAll = () => {
      for (const name of agents(30)) world.callback(name)
      world.time.schedule(5 * minute, callAll)
    }
    callAll()
    await world.time.advance(2 * hour)
    expect(world.requests.length - before).toBeLessThan(30 * 4)
  })
})
