/** After a loss, processes remember different things, under clocks that differ: what is right, and told once, in the end. */
import { describe, expect, test } from 'vitest'
import { answered } from './model/network-outcomes.js'
import { problemsAtTheService } from './model/rules/final-state.js'
import { gapsNotReported } from './model/rules/gaps.js'
import {
  agents,
  codes,
  idsAtTheService,
  keptIds,
  minute,
  nodeOf,
  second,
  settledWorld,
  troublesOf,
  useVirtualProcesses,
} from './model/setup.js'
import { defaultConfiguration, type Node, World } from './model/world.js'

useVirtualProcesses()

const interval = 15 * minute
const elsewhere = { ...defaultConfiguration, callbackUrl: 'https://app.example.com/elsewhere' }
const narrower = { ...defaultConfiguration, notificationTypes: ['behavioral'] } as const
const { parameters: _, ...withoutParameters } = defaultConfiguration
const configurations = { 'with parameters': defaultConfiguration, 'without parameters': withoutParameters }

function sweep(world: World, node: Node) {
  return world.settled(node, (keeper) => keeper.sweep())
}

function rotate({ process, keeper }: Node, parameters: Record<string, string>): void {
  process.receive(0, () => void keeper.rotateParameters({ parameters }))
}

function startWithClock(world: World, skewMs: number): Node {
  const node = world.start(world.configuration, false)
  node.process.jumpWallClock(skewMs)
  node.process.run(() => node.keeper.start())
  return node
}

function gaps(world: World): string[] {
  return world.gaps.map(({ node, what }) => `${node} ${what.username} ${what.cause}`)
}

async function untilClaimed(world: World, call?: string): Promise<void> {
  const claimed = () => world.store.record('agent0')?.claim?.call
  while (call === undefined ? claimed() === undefined : claimed() !== call) await world.time.advance(1)
}

describe('a subscription of an earlier configuration', () => {
  test('is ended once, by the process that remembers it, though the other one knew nothing', async () => {
    const world = await settledWorld({ users: 1 })
    await world.stop(nodeOf(world))
    world.configure(elsewhere)
    world.nextOutcomes.push({ kind: 'status', status: 422 })
    const knowing = world.start()
    await world.time.advance(5 * second)
    world.store.forgetRecord('agent0')
    await sweep(world, world.start())
    await sweep(world, knowing)
    expect(problemsAtTheService(world)).toEqual([])
    await world.time.advance(3 * interval)
    expect(world.requests.filter(({ kind }) => kind === 'unsubscribe')).toHaveLength(1)
    expect(gaps(world)).toEqual([])
    expect(codes(world)).not.toContain('RECEIVER_SUSPECTED')
  })

  test.each([
    ['that overlaps', narrower],
    ['of another callback URL', elsewhere],
  ])('%s, and that another process has ended, is no end that was found', async (_name, configuration) => {
    const world = await settledWorld({ users: 1 })
    await world.stop(nodeOf(world))
    world.configure(configuration)
    const remembering = world.start()
    await untilClaimed(world, 'unsubscribe')
    remembering.process.suspend()
    const other = world.start()
    await sweep(world, other)
    expect(problemsAtTheService(world)).toEqual([])
    world.store.forgetRecord('agent0')
    await sweep(world, other)
    const before = { requests: world.requests.length, gaps: world.gaps.length }
    remembering.process.resume()
    await world.time.advance(5 * interval)
    const ends = world.requests.slice(before.requests).filter(({ kind }) => kind === 'unsubscribe')
    expect(ends.length).toBeLessThanOrEqual(1)
    expect(world.gaps.slice(before.gaps)).toEqual([])
    expect(codes(world)).not.toContain('RECEIVER_SUSPECTED')
  })
})

describe.each(Object.entries(configurations))('%s, clocks that differ', (_name, configuration) => {
  test.each([2 * second, 5 * minute])(
    'by %i ms let no id that is dead take the place of the right one',
    async (skewMs) => {
      const world = await settledWorld({ users: 3, configuration })
      const remembering = nodeOf(world)
      await world.time.advance(minute)
      await sweep(world, remembering)
      remembering.process.suspend()
      world.store.forget()
      const other = startWithClock(world, -skewMs)
      await world.time.advance(second)
      remembering.process.resume()
      await world.time.advance(2 * interval)
      expect(codes(world)).not.toContain('CONFLICT')
      expect(keptIds(remembering)).toEqual(idsAtTheService(world))
      expect(keptIds(other)).toEqual(idsAtTheService(world))
      expect(problemsAtTheService(world)).toEqual([])
    },
  )

  test.each(['replace', 'report'] as const)(
    'with existing %s bring back no id from before a restore',
    async (existing) => {
      const world = await settledWorld({ users: 2, keeper: { existing }, configuration })
      const behind = nodeOf(world)
      const ahead = startWithClock(world, 5 * minute)
      await world.time.advance(minute)
      await sweep(world, ahead)
      ahead.process.suspend()
      world.end(['agent0'])
      await sweep(world, behind)
      world.store.forgetRecord('agent0')
      await sweep(world, behind)
      const ids = idsAtTheService(world)
      const gapsBefore = gaps(world)
      ahead.process.resume()
      await world.time.advance(2 * interval)
      expect(codes(world)).not.toContain('CONFLICT')
      expect(idsAtTheService(world)).toEqual(ids)
      for (const node of [behind, ahead]) expect(keptIds(node)).toEqual(ids)
      expect(gaps(world)).toEqual(gapsBefore)
      expect(problemsAtTheService(world)).toEqual([])
    },
  )
})

describe('a gap is told once', () => {
  test('though the store was emptied, and every process remembers the users', async () => {
    const world = await settledWorld({ users: 3 })
    const first = nodeOf(world)
    const later = world.start()
    await world.time.advance(2 * minute)
    world.end(agents(3))
    world.store.forget()
    await sweep(world, first)
    await world.time.advance(10 * second)
    await sweep(world, later)
    await world.time.advance(interval)
    expect(gaps(world).sort()).toEqual(agents(3).map((name) => `${first.process.name} ${name} ended`))
  })

  test('though the record was lost after the restore', async () => {
    const world = await settledWorld({ users: 3 })
    const first = nodeOf(world)
    world.start()
    await world.time.advance(2 * minute)
    world.end(['agent0'])
    await sweep(world, first)
    world.store.forgetRecord('agent0')
    await sweep(world, first)
    await world.time.advance(2 * interval)
    expect(gaps(world)).toEqual([`${first.process.name} agent0 ended`])
    expect(gapsNotReported(world)).toEqual([])
  })
})

describe('users who have left come back by no roster that was asked before', () => {
  const leavers = ['agent3', 'agent4', 'agent5']

  async function createsAfterTheyLeft(world: World, other: Node): Promise<string[]> {
    for (const name of leavers) world.wantNoLonger(name)
    await sweep(world, other)
    for (const name of leavers) expect(world.service.activeFor(name)).toEqual([])
    const before = world.requests.length
    await world.time.advance(2 * interval)
    expect(problemsAtTheService(world)).toEqual([])
    const created = world.requests
      .slice(before)
      .filter(({ kind, effect }) => kind === 'create' && effect === 201)
    return created.map(({ process, username }) => `${process.name} ${username}`)
  }

  test.each([5, 0, -5])('of a process whose clock is %i minutes ahead', async (minutesAhead) => {
    const world = await settledWorld({ users: 8 })
    const ahead = nodeOf(world)
    ahead.process.jumpWallClock(minutesAhead * minute)
    await world.time.advance(2 * minute)
    await sweep(world, ahead)
    const other = world.start()
    const isRead = () =>
      world.rostersRead.some(({ askedMs, process }) => process === ahead.process && askedMs > interval)
    while (!isRead()) await world.time.advance(second)
    expect(await createsAfterTheyLeft(world, other)).toEqual([])
  })

  test('though another process had met them anew', async () => {
    const world = await settledWorld({ users: 8 })
    const other = world.start()
    await world.time.advance(4 * minute)
    for (const name of leavers) world.store.forgetRecord(name)
    await sweep(world, other)
    expect(await createsAfterTheyLeft(world, other)).toEqual([])
    expect(gaps(world)).toEqual([])
  })
})

describe('a rotation', () => {
  test('of a configuration that was deployed again brings back nothing that was deployed in between', async () => {
    const world = await settledWorld({ users: 2 })
    const rotating = nodeOf(world)
    await world.time.advance(minute)
    rotating.process.suspend()
    const bad = world.start({ ...defaultConfiguration, parameters: { token: world.newSecret() } })
    await world.time.advance(minute)
    const rolledBack = world.start(defaultConfiguration)
    await sweep(world, rolledBack)
    await world.time.advance(minute)
    expect(troublesOf(bad)).toEqual(['SUPERSEDED'])
    await world.stop(rolledBack)
    const parameters = { token: world.newSecret() }
    world.configure({ ...defaultConfiguration, parameters })
    rotate(rotating, parameters)
    rotating.process.resume()
    await world.time.advance(2 * interval)
    expect([troublesOf(rotating), troublesOf(bad)]).toEqual([[], ['SUPERSEDED']])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('wins, though a process of the same configuration has announced that anew on an emptied store', async () => {
    const world = await settledWorld({ users: 2 })
    const rotating = nodeOf(world)
    await world.time.advance(minute)
    rotating.process.suspend()
    world.store.forget()
    const other = world.start()
    await sweep(world, other)
    const parameters = { token: world.newSecret() }
    world.configure({ ...defaultConfiguration, parameters })
    rotate(rotating, parameters)
    rotating.process.resume()
    await world.time.advance(2 * interval)
    expect([troublesOf(rotating), troublesOf(other)]).toEqual([[], ['SUPERSEDED']])
    expect(problemsAtTheService(world)).toEqual([])
  })

  test('of an older deployment, after a loss, leaves its values with nobody as soon as the newer one is back', async () => {
    const world = await settledWorld({ users: 4 })
    const older = nodeOf(world)
    await world.time.advance(minute)
    older.process.suspend()
    world.configure({ ...defaultConfiguration, parameters: { token: world.newSecret() } })
    const newer = world.start()
    await sweep(world, newer)
    newer.process.suspend()
    world.store.forget()
    rotate(older, { token: world.newSecret() })
    older.process.resume()
    await world.time.advance(500)
    newer.process.resume()
    await world.time.advance(2 * minute)
    expect([troublesOf(older), troublesOf(newer)]).toEqual([['SUPERSEDED'], []])
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe.each(Object.entries(configurations))(
  '%s, a dump from before a loss that was mended',
  (_name, configuration) => {
    test.each([true, false])(
      'is written over at once, though it holds a claim; compareAndSet: %s',
      async (hasCompareAndSet) => {
        const world = new World({ seed: 1, usernames: ['agent0'], configuration, hasCompareAndSet })
        const node = world.start()
        await untilClaimed(world)
        const claimedMs = world.time.nowMs
        await world.time.advance(minute)
        const ids = idsAtTheService(world)
        world.store.forget()
        await sweep(world, node)
        await world.time.advance(5 * minute)
        world.store.rewind(world.time.nowMs - claimedMs)
        expect(world.store.record('agent0')?.claim).toBeDefined()
        const begunMs = world.time.nowMs
        expect(await sweep(world, node)).toMatchObject({ active: 1, failed: [] })
        expect(world.time.nowMs - begunMs).toBeLessThan(10 * second)
        expect(keptIds(node)).toEqual(ids)
        expect(gaps(world)).toEqual([])
      },
    )
  },
)

test('an id that one process remembers ends the conflict of another one, also with `existing: report`', async () => {
  const world = await settledWorld({ users: 1, keeper: { existing: 'report' } })
  const remembering = nodeOf(world)
  await world.time.advance(minute)
  world.store.forgetRecord('agent0')
  const other = world.start()
  await sweep(world, other)
  expect(troublesOf(other)).toEqual(['CONFLICT'])
  await world.time.advance(4 * interval)
  expect([troublesOf(remembering), troublesOf(other)]).toEqual([[], []])
})

test('one loss is reported once, though an older copy with the claim of another process comes first', async () => {
  const world = await settledWorld({ users: 2 })
  const first = nodeOf(world)
  const claiming = world.start()
  await world.time.advance(2 * minute)
  world.end(['agent0'])
  claiming.process.run(() => void claiming.keeper.sweep())
  await untilClaimed(world)
  const claimedMs = world.time.nowMs
  await world.time.advance(20 * second)
  await sweep(world, first)
  claiming.process.suspend()
  world.store.rewind(world.time.nowMs - claimedMs)
  first.process.run(() => void first.keeper.sweep())
  await world.time.advance(100 * second)
  claiming.process.resume()
  await sweep(world, claiming)
  await world.time.advance(2 * interval)
  const told = world.problems.filter(
    ({ process, what }) => process === first.process && what.code === 'STORE',
  )
  expect(told.map(({ what }) => what.resolved)).toEqual([false, true])
  expect(problemsAtTheService(world)).toEqual([])
})

describe.each(Object.entries(configurations))('%s, what is remembered', (_name, configuration) => {
  test('tells no gap again, though the store was lost twice', async () => {
    const world = await settledWorld({ users: 1, configuration })
    const first = nodeOf(world)
    const other = world.start()
    await world.time.advance(2 * minute)
    await sweep(world, other)
    first.process.suspend()
    for (let losses = 0; losses < 2; losses++) {
      world.store.forget()
      await sweep(world, other)
      await world.time.advance(2 * minute)
    }
    world.end(['agent0'])
    await sweep(world, other)
    first.process.resume()
    await world.time.advance(2 * interval)
    expect(gaps(world)).toEqual([`${other.process.name} agent0 ended`])
  })

  test('is right, though the same dump is restored three times', async () => {
    const world = await settledWorld({ users: 1, configuration })
    const node = nodeOf(world)
    await world.time.advance(minute)
    const dumpMs = world.time.nowMs
    await world.time.advance(minute)
    world.end(['agent0'])
    await sweep(world, node)
    const before = { gaps: gaps(world), ids: idsAtTheService(world) }
    for (let dumps = 0; dumps < 3; dumps++) {
      await world.time.advance(2 * minute)
      world.store.rewind(world.time.nowMs - dumpMs)
      await sweep(world, node)
    }
    await world.time.advance(2 * interval)
    expect(gaps(world)).toEqual(before.gaps)
    expect(idsAtTheService(world)).toEqual(before.ids)
    expect(keptIds(node)).toEqual(before.ids)
  })

  test('makes of somebody else’s subscription none of ours', async () => {
    const world = await settledWorld({ users: 1, configuration, keeper: { existing: 'report' } })
    const remembering = nodeOf(world)
    await world.time.advance(minute)
    world.subscribeSomebodyElse(['agent0'])
    world.store.forgetRecord('agent0')
    const other = world.start()
    await sweep(world, other)
    await world.time.advance(2 * interval)
    const sent = world.requests.length
    await world.time.advance(8 * interval)
    expect([troublesOf(remembering), troublesOf(other)]).toEqual([['CONFLICT'], ['CONFLICT']])
    expect(world.requests.length - sent).toBeLessThan(20)
  })

  test('of a create without an answer is ended with the user, though another process met nothing', async () => {
    const world = await settledWorld({ users: 1, configuration })
    const node = nodeOf(world)
    world.nextOutcomes.push({ kind: 'silent', effectAfterMs: 100 })
    world.want('newcomer')
    node.process.run(() => void node.keeper.sweep())
    while (world.store.record('newcomer')?.claim === undefined) await world.time.advance(1)
    await world.time.advance(2 * second)
    expect(world.service.activeFor('newcomer')).toHaveLength(1)
    world.wantNoLonger('newcomer')
    world.store.forgetRecord('newcomer')
    await sweep(world, world.start())
    expect(world.store.record('newcomer')).toMatchObject({ isRemoved: true })
    await world.time.advance(3 * interval)
    expect(problemsAtTheService(world)).toEqual([])
  })
})

describe.each(['replace', 'report'] as const)(
  'with existing %s, an id that a dump brings back',
  (existing) => {
    test('under the claim of a process that died is not believed before it is proven', async () => {
      const world = await settledWorld({ users: 1, keeper: { existing } })
      const node = nodeOf(world)
      const dying = world.start()
      await world.time.advance(2 * minute)
      dying.process.run(() => void dying.keeper.sweep())
      await untilClaimed(world)
      const dumpMs = world.time.nowMs
      await world.time.advance(10 * second)
      world.kill(dying)
      await expectNothingChanges(world, node, dumpMs)
    })

    test('to a process that had met the user anew is not believed before it is proven', async () => {
      const world = await settledWorld({ users: 1, keeper: { existing } })
      await world.time.advance(minute)
      const dumpMs = world.time.nowMs
      await world.time.advance(minute)
      await world.stop(nodeOf(world))
      world.store.forgetRecord('agent0')
      world.end(['agent0'])
      const node = world.start()
      await expectNothingChanges(world, node, dumpMs)
    })

    async function expectNothingChanges(world: World, node: Node, dumpMs: number): Promise<void> {
      world.end(['agent0'])
      await sweep(world, node)
      const before = { gaps: gaps(world), ids: idsAtTheService(world) }
      await world.time.advance(5 * minute)
      world.store.rewind(world.time.nowMs - dumpMs)
      await sweep(world, node)
      await world.time.advance(2 * interval)
      expect(codes(world)).not.toContain('CONFLICT')
      expect(gaps(world)).toEqual(before.gaps)
      expect(idsAtTheService(world)).toEqual(before.ids)
      expect(keptIds(node)).toEqual(before.ids)
    }
  },
)

test('what a call has made whose claim was lost is ended with its user, though another process knows nothing of it', async () => {
  const world = await settledWorld({ users: 2 })
  const calling = nodeOf(world)
  const other = world.start()
  await world.time.advance(2 * minute)
  const dumpMs = world.time.nowMs
  world.end(['agent0'])
  world.nextOutcomes.push(answered, { kind: 'slow', effectAfterMs: 100, answerAfterMs: 5_000 })
  calling.process.run(() => void calling.keeper.sweep({ allowRemovals: true }))
  await untilClaimed(world, 'create')
  await world.time.advance(second)
  world.store.rewind(world.time.nowMs - dumpMs)
  world.wantNoLonger('agent0')
  await sweep(world, other)
  expect(world.store.record('agent0')).toMatchObject({ isRemoved: true })
  await world.time.advance(1.2 * interval)
  expect(problemsAtTheService(world)).toEqual([])
})
