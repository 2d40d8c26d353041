/** A store that fails, loses what it held, or holds what cannot be read. */
import { describe, expect, test } from 'vitest'
import { IndexOfNames, KeeperStore } from '../../src/keeper/keeper-store.js'
import { Problems } from '../../src/keeper/reporter.js'
import { storeWith } from '../support/naive-store.js'
import { defaultConfiguration, hour, minute, second } from './convergence/world.js'
import {
  agents,
  nodeOf,
  problemCodes,
  problemsOf,
  settledWorld,
  statesOf,
  swept,
  tellStories,
  worldOf,
} from './stories.js'

tellStories()

type Change = Parameters<typeof storeWith>[0]

const recordKeys = (keys: readonly string[]) => keys.filter((key) => key.startsWith('coaching:user:'))

describe('a store that was emptied', () => {
  test.each([1, 2])(
    'is filled again within a minute by %i processes, and nothing is replaced',
    async (processes) => {
      const world = await settledWorld({ users: 20, processes })
      await world.time.advance(10 * minute)
      const before = world.ids
      const keys = world.store.keys.filter((key) => !key.endsWith(':check')).sort()
      world.store.forget()
      // The first record that is found missing brings back all others.
      await world.time.advance(6 * minute)
      expect(world.store.keys.filter((key) => !key.endsWith(':check')).sort()).toEqual(keys)
      expect(world.ids).toEqual(before)
      expect(world.gaps).toEqual([])
      for (const node of world.nodes) expect(problemCodes(node)).toEqual([])
      expect(world.problems.map(({ what }) => what.code)).toContain('STORE')
    },
  )

  test('makes a process that starts replace each subscription once, and report each', async () => {
    const world = await settledWorld({ users: 20 })
    nodeOf(world).process.kill()
    world.store.forget()
    const { report } = await swept(world)
    expect(report).toMatchObject({ active: 20, created: 0, restored: 20, failed: [] })
    expect(world.causes.sort()).toEqual(
      agents(20)
        .map((name) => `${name} replaced`)
        .sort(),
    )
    expect(world.service.active('keeper')).toHaveLength(20)
  })
})

test('a configuration that the store lost gives its number to no other one: new values reach every user', async () => {
  const world = await settledWorld({ users: 3 })
  nodeOf(world).process.kill()
  world.store.replace('coaching:configuration', undefined)
  const token = world.newSecret()
  world.start({ ...defaultConfiguration, parameters: { token } })
  await world.time.advance(minute)
  const tokens = world.service.active('keeper').map(({ parameters }) => parameters.token)
  expect(tokens).toEqual([token, token, token])
})

test.each([
  ['with', defaultConfiguration.parameters],
  ['without', {}],
])(
  'an older copy makes ids unsure: each subscription is looked up, %s parameters that prove ids',
  async (_, parameters) => {
    const configuration = { ...defaultConfiguration, ...(parameters && { parameters }) }
    const world = await settledWorld({ users: 2, configuration })
    await world.time.advance(20 * minute)
    world.end(['agent0'])
    await world.time.advance(20 * minute)
    expect(world.causes).toEqual(['agent0 ended'])
    world.store.rollBack(38 * minute)
    await world.time.advance(20 * minute)
    expect(statesOf(nodeOf(world))).toEqual({ agent0: 'active', agent1: 'active' })
    for (const [name, id] of Object.entries(world.ids))
      expect(nodeOf(world).keeper.subscription(name)?.subscriptionId).toBe(id)
    expect(world.service.active('keeper')).toHaveLength(2)
  },
)

describe('what cannot be read', () => {
  test('is written again, the key is named once, and nothing is replaced', async () => {
    const world = await settledWorld({ users: 3 })
    const before = world.ids
    for (let count = 0; count < 3; count++) {
      for (const key of world.store.keys) if (!key.endsWith('check')) world.store.replace(key, '{"version":')
      await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    }
    await world.time.advance(20 * minute)
    expect(world.ids).toEqual(before)
    expect(statesOf(nodeOf(world))).toEqual({ agent0: 'active', agent1: 'active', agent2: 'active' })
    for (const key of recordKeys(world.store.keys)) expect(world.store.text(key)).toContain('"provenAt"')
    const told = world.problems.map(({ what }) => what).filter(({ resolved }) => !resolved)
    expect(new Set(told.map(({ code }) => code))).toEqual(new Set(['STORE']))
    expect(
      told.filter(({ message }) => message.includes(recordKeys(world.store.keys)[0] ?? '?')),
    ).toHaveLength(1)
    expect(problemCodes(nodeOf(world))).toEqual([])
  })

  test('is a record of another user, too', async () => {
    const world = await settledWorld({ users: 1 })
    const [key = ''] = recordKeys(world.store.keys)
    world.store.replace(key, world.store.text(key)?.replace('agent0', 'agent1'))
    nodeOf(world).process.kill()
    world.start()
    await world.time.advance(minute)
    expect(world.causes).toEqual(['agent0 replaced'])
    expect(statesOf(nodeOf(world))).toEqual({ agent0: 'active' })
  })
})

test('a key that fails while others work concerns its user only', async () => {
  const world = await settledWorld({ users: 3 })
  const [broken = ''] = recordKeys(world.store.keys)
  const failing = JSON.parse(world.store.text(broken) ?? '').username
  world.store.breakKey(broken)
  await world.time.advance(20 * minute)
  expect(problemCodes(nodeOf(world))).toEqual(['STORE'])
  for (const [name, state] of Object.entries(statesOf(nodeOf(world)))) {
    expect(state).toBe(name === failing ? 'failing' : 'active')
  }
  world.store.repairKeys()
  await world.time.advance(6 * minute)
  expect(problemCodes(nodeOf(world))).toEqual([])
  expect(statesOf(nodeOf(world))[failing]).toBe('active')
})

test('a change of the index that fails holds up no later one', async () => {
  let isAway = true
  const flaky = storeWith((kept) => ({
    get: (key) => (isAway ? Promise.reject(new Error('away')) : kept.get(key)),
  }))
  const store = new KeeperStore(flaky, 'coaching', undefined, new Problems(() => {}))
  const index = new IndexOfNames(store)
  await expect(index.add(['alice'])).rejects.toThrow('away')
  isAway = false
  await store.tryWrite()
  await index.add(['alice'])
  expect(await index.read()).toEqual(new Set(['alice']))
})

test.each(['failing', 'hanging', 'forgetting'] as const)(
  'while the store is %s nothing is sent',
  async (mode) => {
    const world = await settledWorld({ users: 3 })
    await world.time.advance(10 * minute)
    world.store.mode = mode
    const brokenAtMs = world.time.nowMs
    await world.time.advance(hour)
    expect(problemCodes(nodeOf(world))).toContain('STORE')
    expect(world.requestsSince(brokenAtMs).length).toBeLessThanOrEqual(mode === 'forgetting' ? 3 : 0)
    const report = await world.settled(nodeOf(world), (keeper) => keeper.sweep())
    expect(report).toMatchObject({
      wanted: 3,
      active: 0,
      failed: agents(3).map((username) => ({ username })),
    })
    // It cannot say that nothing is left.
    const starting = world.start(undefined, false)
    const unsubscribing = world.settled(starting, (keeper) => keeper.unsubscribeAll())
    await expect(unsubscribing).rejects.toThrow('this process knows no user')
    starting.process.kill()
    world.store.mode = 'working'
    const repairedAtMs = world.time.nowMs
    world.end(['agent0'])
    await world.time.advance(2 * minute)
    expect(world.requestsSince(repairedAtMs)).toContain('create agent0')
    expect(problemCodes(nodeOf(world))).not.toContain('STORE')
  },
)

test('unsubscribeAll names the users whose records it could not read, also in a new process', async () => {
  const world = await settledWorld({ users: 3 })
  nodeOf(world).process.kill()
  for (const key of recordKeys(world.store.keys)) world.store.breakKey(key)
  const node = world.start(undefined, false)
  const report = await world.settled(node, (keeper) => keeper.unsubscribeAll())
  expect(report.failed.map(({ username }) => username).sort()).toEqual(agents(3))
  world.store.repairKeys()
  const again = await world.settled(node, (keeper) => keeper.unsubscribeAll())
  expect(again).toMatchObject({ removed: 3, failed: [] })
})

test('a compareAndSet that compares no more is found before anything is sent, also if records are there', async () => {
  let isBroken = false
  const store = storeWith((kept) => ({
    compareAndSet: (key, expected, value) => isBroken || kept.compareAndSet(key, expected, value),
  }))
  // With so many users no key of the index is missing, which would be a reason for a test, too.
  const world = worldOf({ users: 600, keeper: { store } })
  world.start()
  await world.time.advance(minute)
  nodeOf(world).process.kill()
  isBroken = true
  world.end(agents(1))
  const before = world.requests.length
  const node = world.start()
  await world.time.advance(5 * minute)
  expect(problemCodes(node)).toEqual(['STORE'])
  expect(world.requests).toHaveLength(before)
})

const returning = (returned: unknown): [string, Change, string] => [
  `returns ${returned} for each comparison`,
  () => ({ compareAndSet: () => returned as boolean }),
  'compareAndSet',
]
const changing =
  (changed: (value: string) => string): Change =>
  (kept) => ({
    set: (key, value) => kept.set(key, changed(value)),
    compareAndSet: (key, expected, value) => kept.compareAndSet(key, expected, changed(value)),
  })
const formatting: Change = (kept) => ({ get: async (key) => (await kept.get(key))?.replaceAll(':', ': ') })
const late: Change = (kept) => ({ set: (key, value) => void setTimeout(() => kept.set(key, value), second) })
const parsing: Change = (kept) => ({ get: async (key) => JSON.parse((await kept.get(key)) ?? 'null') })

test.each<[string, Change, string]>([
  ...[1, 'OK', undefined, null, true].map(returning),
  ['cuts long texts', changing((value) => value.slice(0, 255)), 'does not hold what was just written'],
  ['changes letters', changing((value) => value.toLowerCase()), 'does not hold what was just written'],
  ['formats JSON, as a column of type jsonb', formatting, 'does not hold what was just written'],
  ['shows a value a second later', late, 'does not hold what was just written'],
  [
    'throws if another value is there',
    (kept) => ({
      async compareAndSet(...args) {
        if (await kept.compareAndSet(...args)) return true
        throw new Error('The conditional request failed')
      },
    }),
    'The conditional request failed',
  ],
  ['returns JSON parsed', parsing, 'returned a value of type object'],
  [
    'returns JSON parsed, without compareAndSet',
    (kept) => ({ ...parsing(kept), compareAndSet: undefined }),
    'returned a value of type object',
  ],
])('a store that %s is refused before anything is sent', async (_what, changed, message) => {
  const world = worldOf({ users: 1, keeper: { store: storeWith(changed) } })
  const node = world.start()
  await world.time.advance(5 * minute)
  expect(problemsOf(node)).toMatchObject([{ code: 'STORE', message: expect.stringContaining(message) }])
  expect(world.requests).toEqual([])
})

test('a store where compareAndSet alone fails: nothing is sent, and one problem stays until it works', async () => {
  let isDenied = true
  const store = storeWith((kept) => ({
    compareAndSet(key, expected, value) {
      // As on Redis: only the script of a comparison may be denied.
      if (isDenied && expected !== undefined)
        throw new Error('NOPERM this user has no permissions to run eval')
      return kept.compareAndSet(key, expected, value)
    },
  }))
  const world = worldOf({ users: 20, keeper: { store } })
  const node = world.start()
  await world.time.advance(5 * minute)
  expect(world.requests).toEqual([])
  expect(world.problems).toHaveLength(1)
  expect(problemsOf(node)).toMatchObject([{ code: 'STORE', message: expect.stringContaining('NOPERM') }])
  isDenied = false
  await world.time.advance(minute)
  expect(problemCodes(node)).toEqual([])
  expect(world.service.active('keeper')).toHaveLength(20)
})

test('a write that is repeated after a lost answer, and answered `false`, is found by what is stored', async () => {
  const store = storeWith((kept) => ({
    async compareAndSet(...args) {
      await kept.compareAndSet(...args)
      return false
    },
  }))
  const world = worldOf({ users: 20, keeper: { store } })
  const { report } = await swept(world)
  expect(report).toMatchObject({ active: 20, failed: [], problems: [] })
  expect(world.time.nowMs).toBeLessThan(10 * second)
})

test.each([
  ['claim', '"claim"'],
  ['record with the id', '"provenAt"'],
])('a %s whose write got no answer delays its user by seconds, and is no problem', async (_what, part) => {
  const unanswered = new Set<string>()
  const store = storeWith((kept) => ({
    async compareAndSet(key, expected, value) {
      const isWritten = await kept.compareAndSet(key, expected, value)
      if (value.includes(part) && unanswered.size < unanswered.add(key).size) throw new Error('late')
      return isWritten
    },
  }))
  const world = worldOf({ users: 20, keeper: { store } })
  const { report } = await swept(world)
  expect(unanswered.size).toBe(20)
  expect(report).toMatchObject({ active: 20, created: 20, failed: [], problems: [] })
  expect(world.problems).toEqual([])
  expect(world.requests).toHaveLength(20)
  expect(world.time.nowMs).toBeLessThan(20 * second)
})
