/** What is told of troubles, and what a pass makes of them: on the model of the service. */
import { describe, expect, test } from 'vitest'
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
import { type Node, World } from './model/world.js'

useVirtualProcesses()

const unavailable = { kind: 'status', status: 503 } as const

function restoredSince(world: World, atMs: number): number {
  return world.gaps.filter((gap) => gap.atMs >= atMs).length
}

describe('an outage', () => {
  test('of which every fourth request gets through is told once, and over when all is calm for a minute', async () => {
    const world = await settledWorld({ users: 60, keeper: { sweepIntervalMs: minute } })
    let requests = 0
    world.weather = () => (requests++ % 4 < 3 ? unavailable : { kind: 'answered' })
    await world.time.advance(10 * minute)
    expect(codes(world)).toEqual(['SERVICE'])
    world.weather = undefined
    await world.time.advance(7 * minute)
    expect(codes(world)).toEqual(['SERVICE', 'SERVICE is over'])
  })

  test('of a few seconds is waited for by a sweep, which then goes on', async () => {
    const world = await settledWorld({ users: 2 })
    for (let count = 0; count < 40; count++) world.want(`newcomer${count}`)
    const endsAtMs = world.time.nowMs + 4 * second
    world.weather = () => (world.time.nowMs < endsAtMs ? unavailable : { kind: 'answered' })
    const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(report).toMatchObject({ wanted: 42, active: 42, created: 40, failed: [] })
  })

  test('that lasts is not waited for by a sweep for more than a minute or so', async () => {
    const world = await settledWorld({ users: 20 })
    world.weather = () => unavailable
    const startedAt = world.time.nowMs
    const { failed } = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(failed).toHaveLength(20)
    expect(world.time.nowMs - startedAt).toBeLessThan(2 * minute)
  })
})

test('a receiver whose ends are found one after the other is suspected once, however early a delivery comes', async () => {
  const world = await settledWorld({ users: 300, keeper: { maxRequestsPerSecond: 5 } })
  world.end(['agent0', 'agent150', 'agent299'])
  void world.settled(nodeOf(world), (keeper) => keeper.sweep())
  await world.time.advance(5 * second)
  world.callback('agent0')
  await world.time.advance(2 * minute)
  world.callback('agent299')
  await world.time.advance(3 * minute)
  const told = codes(world).filter((code) => code.startsWith('RECEIVER_SUSPECTED'))
  expect(told).toEqual(['RECEIVER_SUSPECTED', 'RECEIVER_SUSPECTED', 'RECEIVER_SUSPECTED is over'])
})

describe('a process that has lost its turn', () => {
  /** It is held up while another one takes its place, and then stands by. */
  async function loseTurn(world: World): Promise<void> {
    const [first] = world.nodes as [Node]
    world.start()
    await world.time.advance(20 * second)
    first.process.suspend()
    await world.time.advance(5 * minute)
    first.process.resume()
    await world.time.advance(40 * second)
  }

  test('and has it again keeps it, whatever comes of a request from before', async () => {
    const world = await settledWorld({ users: 1 })
    const [first] = world.nodes as [Node]
    await world.time.advance(20 * second)
    world.end(['agent0'])
    world.nextFates.push({ kind: 'slow', effectAfterMs: 100, answerAfterMs: 25 * second })
    first.process.receive(0, () => void first.keeper.sweep())
    await world.time.advance(second)
    world.forget()
    const other = world.start()
    await world.time.advance(5 * second)
    await world.stop(other)
    await world.time.advance(2 * minute)
    const turns = world.logged.filter((line) => /process 1: This process keeps the roster now/.test(line))
    expect(turns).toHaveLength(1)
  })

  test('has no trouble with the service any more', async () => {
    const world = await settledWorld({ users: 5, keeper: { sweepIntervalMs: minute } })
    world.weather = () => unavailable
    await world.time.advance(3 * minute)
    const [first] = world.nodes as [Node]
    expect(troublesOf(first)).toEqual(['SERVICE'])
    await loseTurn(world)
    expect(troublesOf(first)).toEqual([])
  })

  test('has no trouble with the roster any more', async () => {
    const world = await settledWorld({ users: 5 })
    const [first] = world.nodes as [Node]
    world.rosterMode = 'throwing'
    await world.settled(first, (keeper) => keeper.sweep())
    expect(troublesOf(first)).toEqual(['ROSTER'])
    await loseTurn(world)
    expect(troublesOf(first)).toEqual([])
  })

  test('while it asked for the roster, does nothing with the answer', async () => {
    let answer: { readonly names: readonly string[]; readonly afterMs: number } = {
      names: agents(5),
      afterMs: 1,
    }
    const usernames = () =>
      new Promise<readonly string[]>((resolve) => setTimeout(resolve, answer.afterMs, answer.names))
    const world = await settledWorld({ users: 5, keeper: { usernames } })
    const [first] = world.nodes as [Node]
    // So that a beat comes between the question and the answer.
    await world.time.advance(5 * second)
    answer = { names: [], afterMs: 29 * second }
    void world.settled(first, (keeper) => keeper.sweep())
    await world.time.advance(second)
    answer = { names: agents(5), afterMs: 1 }
    const next = { ...world.configuration, parameters: { token: world.newSecret() } }
    world.configure(next)
    world.start(next)
    await world.time.advance(minute)
    expect(world.problems.filter(({ what }) => what.code === 'ROSTER')).toEqual([])
  })
})

test('a sweep that waits for the end of an outage can be stopped', async () => {
  const world = await settledWorld({ users: 20 })
  world.weather = () => unavailable
  void world.settled(nodeOf(world), (keeper) => keeper.sweep())
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

test('a pass begins with those who have no subscription yet', async () => {
  const world = await settledWorld({ users: 200, keeper: { maxRequestsPerSecond: 10 } })
  world.want('newcomer')
  const before = world.requests.length
  void world.settled(nodeOf(world), (keeper) => keeper.sweep())
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

describe('a problem of the roster', () => {
  test('that cannot be read hides none of one that is not believed', async () => {
    const world = await settledWorld({ users: 20 })
    world.rosterMode = 'throwing'
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    world.rosterMode = 'working'
    for (const name of agents(16)) world.wantNoLonger(name)
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const told = world.problems.map(({ what }) => what.message)
    expect(told).toEqual([
      expect.stringContaining('cannot be read'),
      expect.stringMatching(/^Over: .*cannot be read/),
      expect.stringContaining('lacks 16 of 20 recorded users'),
    ])
    world.wantNoLonger('agent16')
    await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    const { problems } = nodeOf(world).process.run(() => nodeOf(world).keeper.status())
    expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining('lacks 17 of 20')])
    expect(world.problems).toHaveLength(3)
  })
})

test('what a listener of the progress throws is in the log', async () => {
  const world = await settledWorld({ users: 1 })
  await world.settled(nodeOf(world), (keeper) =>
    keeper.sweep({
      onProgress() {
        throw new Error('no terminal')
      },
    }),
  )
  expect(world.logged.join('\n')).toMatch(/onProgress failed.*no terminal/)
})

describe('while the store hangs', () => {
  test('those who have ended are restored at the rate that is allowed, not one in each of its timeouts', async () => {
    const world = await settledWorld({ users: 400 })
    world.store.mode = 'hanging'
    await world.time.advance(minute)
    world.end(agents(400))
    const endedAt = world.time.nowMs
    void world.settled(nodeOf(world), (keeper) => keeper.sweep())
    await world.time.advance(90 * second)
    expect(restoredSince(world, endedAt)).toBe(400)
  })

  test('a process that has never read it says that it does nothing', async () => {
    const world = new World({ seed: 1, usernames: agents(2) })
    world.store.mode = 'hanging'
    world.start()
    await world.time.advance(minute)
    expect(world.problems[0]?.what).toMatchObject({
      code: 'STORE',
      message: expect.stringContaining('this process does nothing'),
    })
  })
})
