/** What incidents cost, and how fast they are over: in virtual time, on the model of the service. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sequences } from '../support/random-runs.js'
import type { NetworkOutcome } from './model/network-outcomes.js'
import { problemsAtTheService } from './model/rules/final-state.js'
import { agents, codes, hour, minute, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import { recordIn } from './model/stored-records.js'
import { epochMs } from './model/virtual-process.js'
import { defaultConfiguration, World } from './model/world.js'

useVirtualProcesses()

interface Ends {
  readonly users: number
  readonly pace: { readonly maxRequestsPerSecond: number; readonly concurrency: number }
  readonly hasParameters: boolean
  readonly intervalsBefore: number
  readonly isAfterCrash: boolean
  /** Subscriptions of some users end at once, and then time passes. */
  readonly ends: readonly { readonly share: number; readonly thenMs: number }[]
}

async function endsAreRepairedInTime({ users, pace, hasParameters, ...given }: Ends): Promise<void> {
  const { parameters: _, ...withoutParameters } = defaultConfiguration
  const configuration = hasParameters ? defaultConfiguration : withoutParameters
  const names = agents(users)
  const world = new World({ seed: users, usernames: names, configuration, keeper: pace })
  world.start()
  const { maxRequestsPerSecond } = pace
  await world.time.advance(2 * minute + (users * 2_000) / maxRequestsPerSecond)
  await world.time.advance(given.intervalsBefore * 15 * minute)
  const unharmed = new Set(names)
  if (given.isAfterCrash) {
    for (const node of [...world.nodes]) world.kill(node)
    // A claim that a crash leaves behind stands for two minutes, however fast the others are repaired.
    const isClaimed = (name: string) => recordIn(world.store.text(name) ?? '')?.claim !== undefined
    for (const name of names.filter(isClaimed)) unharmed.delete(name)
    world.start()
  }
  const waves: { names: string[]; atMs: number }[] = []
  for (const { share, thenMs } of given.ends) {
    // Each user once: who is restored for the second time without a delivery in between has to wait.
    const harmed = [...unharmed].filter(() => world.random() < share)
    for (const name of harmed) unharmed.delete(name)
    world.end(harmed)
    waves.push({ names: harmed, atMs: world.time.nowMs })
    await world.time.advance(thenMs)
  }
  await world.time.advance(20 * minute)
  for (const wave of waves) {
    const restored = wave.names.flatMap((name) => restoredAfter(world, name, wave.atMs))
    if (restored.length === 0) continue
    const tookMs = Math.max(...restored) - Math.min(...restored)
    // And the time that the last request takes.
    const limitMs = minute + (users / maxRequestsPerSecond) * 1_000 + second
    expect(tookMs, `${wave.names.length} users`).toBeLessThanOrEqual(limitMs)
  }
  expect(world.violations).toEqual([])
}

/** When a user was restored after a time, unless a request did so that a process had sent before it died. */
function restoredAfter(world: World, username: string, ms: number): number[] {
  const next = world.service.subscriptions.find(
    ({ usernames, createdAtMs }) => usernames.includes(username) && createdAtMs > ms,
  )
  const by = world.requests.find(({ created }) => created === next?.id)
  return by?.process.isDead === true ? [] : [next?.createdAtMs ?? Number.POSITIVE_INFINITY]
}

const outages: [string, NetworkOutcome][] = [
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
  test.each(outages)('in which the service %s costs at most 150 requests', async (_what, outcome) => {
    const world = await settledWorld({ users: 5 })
    const before = world.requests.length
    world.everyOutcome = () => outcome
    await world.time.advance(2 * hour)
    // After a 401 the client asks for a new token and tries again.
    const isUnauthorized = outcome.kind === 'status' && outcome.status === 401
    const requests = world.requests.length - before
    expect(requests).toBeGreaterThan(isUnauthorized ? 50 : 25)
    expect(requests).toBeLessThanOrEqual(isUnauthorized ? 90 : 45)
    expect(requests + world.tokenRequests).toBeLessThanOrEqual(150)
    const isRefused = outcome.kind === 'no-token' || (outcome.kind === 'status' && outcome.status < 500)
    expect(codes(world)).toEqual([isRefused ? 'CREDENTIALS' : 'SERVICE'])
    world.everyOutcome = undefined
    await world.time.advance(16 * minute)
    expect(problemsAtTheService(world)).toEqual([])
    expect(world.violations).toEqual([])
  })

  test('costs no more for many users', async () => {
    const world = await settledWorld({ users: 200 })
    const before = world.requests.length
    world.everyOutcome = () => ({ kind: 'status', status: 503 })
    await world.time.advance(2 * hour)
    expect(world.requests.length - before).toBeLessThanOrEqual(40)
  })

  test('in which the app sweeps every 20 seconds, and the roster changes, costs no more', async () => {
    const world = await settledWorld({ users: 5 })
    const before = world.requests.length
    world.everyOutcome = () => ({ kind: 'status', status: 503 })
    for (let count = 0; count < 360; count++) {
      if (count % 30 === 0) world.want(`newcomer${count}`)
      for (const { process, keeper } of world.nodes) process.receive(0, () => void keeper.sweep())
      await world.time.advance(20 * second)
    }
    expect(world.requests.length - before).toBeLessThanOrEqual(150)
    expect(world.violations).toEqual([])
  })

  test('in which the service answers with one error after the other costs no more', async () => {
    const world = await settledWorld({ users: 300 })
    const before = world.requests.length
    const statuses = [503, 403]
    world.everyOutcome = () => ({
      kind: 'status',
      status: statuses[world.requests.length % statuses.length] ?? 503,
    })
    await world.time.advance(2 * hour)
    const requests = world.requests.length - before
    expect(requests + world.tokenRequests).toBeLessThanOrEqual(150)
    expect(world.violations).toEqual([])
  })

  test('which begins before the first process starts costs no more', async () => {
    const world = new World({ seed: 2, usernames: agents(100) })
    world.everyOutcome = () => ({ kind: 'status', status: 503 })
    world.start()
    await world.time.advance(2 * hour)
    expect(world.requests.length).toBeLessThanOrEqual(150)
  })
})

describe('ends', () => {
  test.each([
    [200, 50],
    // So many that those who are restored first are due for a probe before the last ones are restored.
    [150, 1],
  ])(
    'of all %i users at once are repaired within a minute and users divided by %i a second',
    async (users, maxRequestsPerSecond) => {
      const world = new World({ seed: 1, usernames: agents(users), keeper: { maxRequestsPerSecond } })
      world.start()
      await world.time.advance(2 * minute + (users / maxRequestsPerSecond) * 1_000)
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
      for (const { what } of world.gaps) {
        const provenMs = (what.lastProvenAt ?? Number.NaN) - epochMs
        expect(provenMs).toBeLessThanOrEqual(endedAtMs)
        expect(provenMs).toBeGreaterThan(endedAtMs - 16 * minute)
      }
      expect(world.violations).toEqual([])
    },
  )

  test.each([
    ['one process', async () => {}, (leastMs: number) => leastMs + minute],
    [
      'processes that crash and start again',
      async (world: World) => {
        for (let crash = 0; crash < 30; crash++) {
          await world.time.advance(7 * minute)
          for (const node of [...world.nodes]) world.kill(node)
          world.start()
        }
      },
      (leastMs: number) => Math.max(leastMs, 15 * minute) + 2 * minute,
    ],
  ])(
    'of a receiver that stays broken are repaired by %s ever more rarely, down to once in 15 minutes, and for ever',
    async (_who, meanwhile, mostMs) => {
      const world = await settledWorld({ users: 5 })
      const endAllSoon = () => {
        world.end(agents(5))
        world.time.schedule(5_000, endAllSoon)
      }
      endAllSoon()
      await meanwhile(world)
      await world.time.advance(6 * hour - world.time.nowMs)
      expect(world.problems.filter(({ what }) => what.code === 'RECEIVER_SUSPECTED')).not.toHaveLength(0)
      for (const name of agents(5)) {
        const times = world.service.subscriptions
          .filter(({ usernames }) => usernames.includes(name))
          .map(({ createdAtMs }) => createdAtMs)
        // The first restore is immediate.
        const waits = times.slice(2).map((time, index) => time - (times[index + 1] as number))
        for (const [index, wait] of waits.entries()) {
          const leastMs = Math.min(15, 2 ** index) * minute
          // It is asked for a little after the time, or a little before an answer that took longer than the next one.
          expect(wait).toBeGreaterThanOrEqual(leastMs - 1_000)
          expect(wait).toBeLessThanOrEqual(mostMs(leastMs))
        }
        expect(waits.length).toBeGreaterThan(15)
      }
      expect(world.violations).toEqual([])
    },
  )

  test('that come after a crash, while no id is certain, are repaired as fast', async () => {
    const users = 70
    const pace = { maxRequestsPerSecond: 1, concurrency: 1 }
    const world = new World({ seed: 1, usernames: agents(users), keeper: pace })
    world.start()
    await world.time.advance(minute + 2 * users * second)
    for (const node of [...world.nodes]) world.kill(node)
    const found = agents(users).filter((_, index) => index % 10 === 0)
    world.end(found)
    world.start()
    // The process that follows has begun its first pass a minute ago, and found some of these.
    await world.time.advance(2 * minute)
    const endedAtMs = world.time.nowMs
    const later = agents(users).filter((_, index) => index % 10 !== 0 && index % 3 === 0)
    world.end(later)
    await world.time.advance(5 * minute)
    const restored = later.flatMap((name) => restoredAfter(world, name, endedAtMs))
    expect(restored).toHaveLength(later.length)
    expect(Math.max(...restored) - Math.min(...restored)).toBeLessThanOrEqual(minute + users * second)
  })

  test('that come together are found and repaired together, whatever the keeper is doing', {
    timeout: 600_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          users: fc.integer({ min: 3, max: 120 }),
          pace: fc.constantFrom(
            { maxRequestsPerSecond: 50, concurrency: 8 },
            { maxRequestsPerSecond: 5, concurrency: 2 },
            { maxRequestsPerSecond: 1, concurrency: 1 },
          ),
          hasParameters: fc.boolean(),
          // Which probe of a user comes next, and how far the turn is.
          intervalsBefore: fc.double({ min: 0, max: 4, noNaN: true }),
          // A process that follows one that has crashed trusts no id.
          isAfterCrash: fc.boolean(),
          ends: fc.array(
            fc.record({ share: fc.double({ min: 0.1, max: 1, noNaN: true }), thenMs: fc.nat(5 * minute) }),
            { minLength: 1, maxLength: 3 },
          ),
        }),
        endsAreRepairedInTime,
      ),
      { numRuns: Math.ceil(sequences / 15) },
    )
  })

  test('that come with the first one found are reported with it: the receiver is suspected at once', async () => {
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
  test('costs one request for each user in each interval, and nothing is reported', async () => {
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

  test('costs no more after restores that were ever rarer: where both are due, one request proves or restores', async () => {
    const world = await settledWorld({ users: 1 })
    // The interval begins with a request, the wait for the next restore with its answer.
    world.everyOutcome = () => ({ kind: 'slow', effectAfterMs: 100, answerAfterMs: 2 * second })
    for (let restores = 1; restores <= 5; restores++) {
      world.end(['agent0'])
      while (world.gaps.length < restores) await world.time.advance(10 * second)
    }
    world.everyOutcome = undefined
    const before = world.requests.length
    await world.time.advance(hour)
    expect(world.requests.length - before).toBe(4)
  })
})
