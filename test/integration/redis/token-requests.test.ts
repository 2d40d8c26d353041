import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { credentials, fakeService, tokenAnswer } from '../../support/fake-service.js'
import { recordingLogger } from '../../support/recording-logger.js'
import { RedisServer } from '../../support/redis-server.js'
import { type AppProcess, AppProgram, type AppReport, triedThrice } from './app-process.js'
import { keyvOn, type StoreKind } from './stores.js'

let program: AppProgram
beforeAll(async () => {
  program = await AppProgram.build()
})
afterAll(() => program[Symbol.asyncDispose]())

async function startApps(
  count: number,
  emulator: Emulator,
  kind: StoreKind,
  { url }: RedisServer,
): Promise<AppProcess[]> {
  return Promise.all(Array.from({ length: count }, () => program.start(emulator, kind, url)))
}

async function endAll(apps: readonly AppProcess[]): Promise<(AppReport & { exitCode: unknown })[]> {
  return Promise.all(apps.map((app) => app.end()))
}

/** Every call gave a token, and every app ended by itself. */
function expectAllWell(reports: readonly (AppReport & { exitCode: unknown })[]): void {
  expect(reports.flatMap(({ failures }) => failures)).toEqual([])
  expect(reports.map(({ exitCode }) => exitCode)).toEqual(reports.map(() => 0))
}

/** A second for the store, and some for timers and connections. */
function expectShortDelays(reports: readonly AppReport[]): void {
  expect(Math.max(...reports.map(({ longestDelayMs }) => longestDelayMs))).toBeLessThanOrEqual(1_500)
}

describe('many processes on one Redis', () => {
  // They refresh within a tenth of the lifetime: in a shorter time a busy machine would let most of them ask at once.
  test(
    'ioredis and node-redis: ten processes share their tokens: at the start each asks, later a few of them',
    triedThrice,
    async () => {
      await using server = await RedisServer.start()
      await using emulator = await startEmulator({ tokenLifetimeSeconds: 10 })
      const kinds = ['ioredis', 'node-redis'] as const
      const apps = (await Promise.all(kinds.map((kind) => startApps(5, emulator, kind, server)))).flat()
      for (const app of apps) app.begin()
      await setTimeout(20_000)
      const reports = await endAll(apps)
      expectAllWell(reports)
      const requests = emulator.requestCounts.token
      expect(requests).toBeGreaterThanOrEqual(2)
      // One at the start for each process, then a few in each lifetime. Without sharing: three for each process.
      expect(requests).toBeLessThanOrEqual(20)
    },
  )

  test('Keyv: processes that start later use the token of the first', async () => {
    await using server = await RedisServer.start()
    await using emulator = await startEmulator()
    const [first, ...later] = await startApps(5, emulator, 'Keyv', server)
    first?.begin()
    const redis = new Redis(server.url)
    await expect.poll(() => redis.dbsize()).toBe(1)
    redis.disconnect()
    for (const app of later) app.begin()
    const reports = await endAll([...(first ? [first] : []), ...later])
    expectAllWell(reports)
    expect(emulator.requestCounts.token).toBe(1)
    expect(new Set(reports.flatMap(({ tokens }) => tokens)).size).toBe(1)
  })

  test('a Map: one process makes at most two token requests in each of four lifetimes', async () => {
    await using server = await RedisServer.start()
    await using emulator = await startEmulator({ tokenLifetimeSeconds: 2 })
    const apps = await startApps(1, emulator, 'Map', server)
    for (const app of apps) app.begin()
    await setTimeout(8_000)
    expectAllWell(await endAll(apps))
    expect(emulator.requestCounts.token).toBeLessThanOrEqual(8)
  })
})

describe('a Redis that is away', () => {
  const kinds: readonly StoreKind[] = ['ioredis', 'node-redis', 'Keyv']
  const outages = {
    killed: { begin: (server: RedisServer) => server.kill(), end: (server: RedisServer) => server.restart() },
    stopped: {
      begin: async (server: RedisServer) => server.stop(),
      end: async (server: RedisServer) => server.resume(),
    },
  }

  test.each([
    ['killed', 'before the start'],
    ['stopped', 'in the middle'],
  ] as const)('%s %s: every call succeeds, delayed by at most 1.5 s', triedThrice, async (how, when) => {
    await using server = await RedisServer.start()
    await using emulator = await startEmulator({ tokenLifetimeSeconds: 3 })
    const outage = outages[how]
    if (when === 'before the start') await outage.begin(server)
    const apps = (await Promise.all(kinds.map((kind) => startApps(2, emulator, kind, server)))).flat()
    for (const app of apps) app.begin()
    if (when === 'in the middle') {
      await setTimeout(2_000)
      await outage.begin(server)
    }
    // More than a lifetime without a store, and then with one again.
    await setTimeout(4_000)
    await outage.end(server)
    await setTimeout(4_000)
    const reports = await endAll(apps)
    expectAllWell(reports)
    expectShortDelays(reports)
  })

  test('does not keep an app from ending', async () => {
    await using server = await RedisServer.start()
    await using emulator = await startEmulator()
    const apps = (await Promise.all(kinds.map((kind) => startApps(1, emulator, kind, server)))).flat()
    for (const app of apps) app.begin()
    await setTimeout(1_000)
    await server.kill()
    await setTimeout(1_000)
    expectAllWell(await endAll(apps))
  })
})

test(
  'a process that is killed while it requests a token delays the others by less than 1.5 s',
  triedThrice,
  async () => {
    await using server = await RedisServer.start()
    await using emulator = await startEmulator()
    const [dying, ...others] = await startApps(5, emulator, 'ioredis', server)
    emulator.injectFault('token', { delayMs: 20_000 }, { times: 1 })
    dying?.begin()
    await expect.poll(() => emulator.requestCounts.token).toBe(1)
    await dying?.kill()
    for (const app of others) app.begin()
    await setTimeout(3_000)
    const reports = await endAll(others)
    expectAllWell(reports)
    expect(emulator.requestCounts.token).toBeGreaterThanOrEqual(2)
    expectShortDelays(reports)
  },
)

test('Keyv, while its Redis is down: the log says once that nothing is kept, and every call succeeds', async () => {
  await using server = await RedisServer.start()
  const { store, close } = keyvOn(server.url)
  await store.set('kept', 'while Redis is up')
  await server.kill()
  // The way of Keyv that the warning is there for.
  await expect.poll(() => store.set('lost', 'while Redis is down')).toBe(true)
  expect(await store.get('lost')).toBeUndefined()

  const service = fakeService()
  const { lines, ...logger } = recordingLogger()
  const client = service.client({ auth: { ...credentials, tokenCache: store }, logger })
  service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 1)
  for (const expected of ['token-1', 'token-2', 'token-3']) {
    expect(await client.getAccessToken()).toBe(expected)
    await setTimeout(1_000)
  }
  expect(lines.filter(([fields]) => Object(fields).event === 'token-cache.not-kept')).toHaveLength(1)
  await client.close()
  await close()
})
