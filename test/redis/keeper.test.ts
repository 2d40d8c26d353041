/**
 * Two keepers on one Redis, which are killed at random moments while the roster changes and the service ends
 * subscriptions. Their clocks run faster than ours: see `programs/fast-clock.ts`.
 */
import { Redis } from 'ioredis'
import { type KeeperGap, NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { expect, test, vi } from 'vitest'
import { RedisServer } from '../support/redis-server.js'
import { fastTime, timesFaster } from './fast-time.js'
import { KeeperProcesses } from './keeper-processes.js'
import { type Inactivity, SubscriptionHistory } from './subscription-history.js'

const callbackUrl = 'https://app.example.com/notifications'
/** At least so many; more until enough of them have met a keeper at work, and enough work was done. */
const kills = 50
/** When nothing has changed for this long by the keepers' clocks, they are done: five of their intervals. */
const quietMs = 5 * 60_000
/** Clocks of processes show whole milliseconds, which count for more where time passes faster. */
const clockErrorMs = 10 * timesFaster

test('two keepers, killed again and again: exactly one subscription per user, as the store says, and every gap is told', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 100_000)
  console.log(`SEED=${seed} repeats these moments`)
  const random = randomOf(seed)
  await using redis = await RedisServer.start({ appendOnly: true })
  await using emulator = await startEmulator()
  await using client = new NotificationClient(emulator.clientOptions)
  const history = new SubscriptionHistory(emulator)
  const foreign = await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['somebody-else'],
    callbackUrl,
  })
  const roster = new Set(Array.from({ length: 12 }, (_, index) => `agent-${index}`))
  await using keepers = await KeeperProcesses.start({ emulator, redis, callbackUrl, roster })
  let killedAtWork = 0

  const isEnough = () => killedAtWork > 10 && history.lifetimes.length > 30
  for (let kill = 0; kill < kills || !isEnough(); kill++) {
    if (random() < 0.7) {
      // As a rule the one who came last: a create for them may be under way just now.
      const leaver = [...roster].at(random() < 0.7 ? -1 : 0) as string
      roster.delete(leaver)
      roster.add(`newcomer-${kill}`)
      await keepers.setRoster(roster)
    }
    const ended = emulator.subscriptions[Math.floor(random() * emulator.subscriptions.length)]
    if (random() < 0.7 && ended !== undefined && ended.subscriptionId !== foreign.subscriptionId) {
      emulator.endSubscription(ended.subscriptionId)
    }
    // Creates take a while, so that kills fall between a request and its answer; some answers are lost.
    emulator.injectFault('create', { delayMs: 200 }, { times: 3 })
    if (random() < 0.3) emulator.injectFault('create', { reset: 'after-processing' })
    const atWork = await keepers.indexAtWork()
    if (random() < 0.45) {
      killedAtWork++
      await killAtMoment(emulator, () => keepers.kill(atWork), random)
      await keepers.restart(atWork)
    } else {
      // Not both at a time: the other one is needed to take over.
      await pause(random() * 400)
      keepers.kill(1 - atWork)
      await keepers.restart(1 - atWork)
    }
  }
  const faultsEndedAt = Date.now()

  const reader = new Redis(redis.url)
  try {
    // How long that takes is up to the machine: its pauses count for more where time passes faster.
    await vi.waitFor(expectQuiet, { timeout: 150_000, interval: 500 })
    expect((await stored(reader)).join()).not.toContain('sesame')
  } finally {
    reader.disconnect()
  }
  console.log(
    `${killedAtWork} killed at work, ${history.lifetimes.length} subscriptions, ${(await gapsOf(keepers)).length} gaps; ` +
      `settled ${Math.round((Date.now() - faultsEndedAt) / 1_000)} s after the last kill`,
  )

  const gaps = await gapsOf(keepers)
  // Of who has left before the answer to a create was found out, nobody asks any more.
  const inactivities = [...roster].flatMap((username) => history.inactivitiesOf(username))
  expect(inactivities.length).toBeGreaterThan(0)
  const untold = inactivities.filter((each) => !gaps.some((gap) => isWithin(each, gap)))
  expect(untold, untold.map(({ username }) => storyOf(username)).join('\n')).toEqual([])
  const untrue = gaps.filter((gap) => gap.cause === 'ended' && !isTrue(gap))
  expect(untrue, untrue.map(({ username }) => storyOf(username)).join('\n')).toEqual([])
  expect(emulator.subscriptions).toContainEqual(expect.objectContaining(foreign))
  expect(keepers.output).not.toMatch(/CONFLICT|ROSTER|SUPERSEDED|STRAY|sesame/)

  /** Everything is as it should be, and stays so. */
  async function expectQuiet(): Promise<void> {
    await expectAsWanted()
    const before = { history: structuredClone(history.lifetimes), gaps: (await gapsOf(keepers)).length }
    await pause(quietMs / timesFaster)
    expect(history.lifetimes, keepers.output).toEqual(before.history)
    expect(await gapsOf(keepers), keepers.output).toHaveLength(before.gaps)
  }

  async function expectAsWanted(): Promise<void> {
    const others = emulator.subscriptions.filter((each) => each.subscriptionId !== foreign.subscriptionId)
    const usernames = others.map((each) => each.usernames.join()).sort()
    expect(usernames, keepers.output).toEqual([...roster].sort())
    for (const { notificationTypes, parameters, callbackUrl: url } of others) {
      expect({ types: [...notificationTypes].sort(), parameters, url }).toEqual({
        types: ['behavioral', 'call-score'],
        parameters: { token: 'sesame' },
        url: callbackUrl,
      })
    }
    const ids = Object.fromEntries(others.map((each) => [each.usernames.join(), each.subscriptionId]))
    expect(await storedIds(reader), keepers.output).toEqual(ids)
  }

  function isWithin({ username, from, to }: Inactivity, gap: KeeperGap): boolean {
    const { lastProvenAt = Number.NEGATIVE_INFINITY, restoredAt } = gap
    const fast = (at: number) => fastTime(keepers.clockStartedAt, at)
    return (
      gap.username === username &&
      lastProvenAt <= fast(from) + clockErrorMs &&
      restoredAt >= fast(to) - clockErrorMs
    )
  }

  /** For somebody who looks for a reason: milliseconds since the clocks started, by ours. */
  function storyOf(username: string): string {
    const ms = (at: number | undefined) => at && at - keepers.clockStartedAt
    const slowMs = (at: number | undefined) => at && Math.round((at - keepers.clockStartedAt) / timesFaster)
    const lines = history
      .of(username)
      .map(({ subscription, createdAt, endedAt, reason }) => [
        subscription.subscriptionId,
        ms(createdAt),
        ms(endedAt),
        reason,
      ])
    const told = gaps
      .filter((gap) => gap.username === username)
      .map(({ subscriptionId, lastProvenAt, restoredAt, cause }) => [
        subscriptionId,
        slowMs(lastProvenAt),
        slowMs(restoredAt),
        cause,
      ])
    return JSON.stringify({ username, subscriptions: lines, gaps: told })
  }

  /** Whether a subscription of this user ended in that time. */
  function isTrue({ username, lastProvenAt = 0, restoredAt }: KeeperGap): boolean {
    return history.of(username).some(({ endedAt = Number.POSITIVE_INFINITY }) => {
      const at = fastTime(keepers.clockStartedAt, endedAt)
      return at >= lastProvenAt - clockErrorMs && at <= restoredAt + clockErrorMs
    })
  }
})

/** At any moment, or just when a subscription begins or ends, before the keeper can know. */
async function killAtMoment(emulator: Emulator, kill: () => void, random: () => number): Promise<void> {
  const event = (['created', 'ended', undefined] as const)[Math.floor(random() * 3)]
  const stop = event === undefined ? () => {} : emulator.on(event, kill)
  await pause(random() * 400)
  stop()
  kill()
}

async function gapsOf(keepers: KeeperProcesses): Promise<KeeperGap[]> {
  return (await keepers.reports()).flatMap((report) => (report.kind === 'gap' ? [report.gap] : []))
}

/** Everything that is in the store, keys included. */
async function stored(redis: Redis): Promise<string[]> {
  const keys = await redis.keys('*')
  expect(keys.join()).not.toMatch(/agent|newcomer/)
  return Promise.all(keys.map(async (key) => `${key} ${await redis.get(key)}`))
}

/** What the store says of users who are kept. */
async function storedIds(redis: Redis): Promise<Record<string, number>> {
  const { chunks } = JSON.parse((await redis.get('kept:head')) ?? '{"chunks":0}')
  const ids: Record<string, number> = {}
  for (let index = 0; index < chunks; index++) {
    const { records } = JSON.parse((await redis.get(`kept:chunk:${index}`)) ?? '{"records":[]}')
    for (const { u: username, s: slots } of records) for (const { i: id } of slots) ids[username] = id
  }
  return ids
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
