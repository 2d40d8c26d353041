/**
 * Two keepers on one Redis, which are killed at random moments while the roster changes and the service ends
 * subscriptions. Their clocks run faster than ours: see `programs/fast-clock.ts`. What happens to them stands in
 * `disturbances.ts`, what they must never do in `keeper-rules.ts`; here is what must be true at the end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type KeeperGap, NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { expect, test, vi } from 'vitest'
import { RedisServer } from '../support/redis-server.js'
import { type Disturbance, Disturbances, plan } from './disturbances.js'
import { fastMs, fastTime, slowTime, timesFaster } from './fast-time.js'
import { KeeperProcesses, type KeeperReport, type Span } from './keeper-processes.js'
import { KeeperRequests } from './keeper-requests.js'
import { rosterMs, violations } from './keeper-rules.js'
import { Random } from './random.js'
import { RosterHistory } from './roster-history.js'
import type { StoredChunk } from './store-history.js'
import { type Inactivity, SubscriptionHistory } from './subscription-history.js'

const callbackUrl = 'https://app.example.com/notifications'
/** When nothing has changed for this long by the keepers' clocks, they are done: five of their intervals. */
const quietMs = fastMs(5 * 60_000)
/** Clocks of processes show whole milliseconds, which count for more where time passes faster. */
const clockErrorMs = 10 * timesFaster

/** What follows from an answer has come to the store. */
const followMs = 1_500

test('two keepers, killed again and again: exactly one subscription per user, as the store says, and every gap is told', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 100_000)
  console.log(`SEED=${seed} repeats these moments`)
  const random = new Random(seed)
  await using redis = await RedisServer.start({ appendOnly: true })
  // A token belongs to a process: it must outlive the process.
  await using emulator = await startEmulator({ tokenLifetimeSeconds: 86_400 })
  await using client = new NotificationClient(emulator.clientOptions)
  const foreign = await Promise.all([
    client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['somebody-else'],
      callbackUrl,
    }),
    client.createSubscription({
      notificationTypes: ['behavioral', 'call-score'],
      usernames: ['agent-0'],
      callbackUrl: `${callbackUrl}/elsewhere`,
    }),
    client.createSubscription({
      notificationTypes: ['conversation-ai'],
      usernames: ['agent-1', 'newcomer-1'],
      callbackUrl,
    }),
  ])
  const foreignIds = new Set(foreign.map(({ subscriptionId }) => subscriptionId))
  const foreignBefore = [...emulator.subscriptions]
  const history = new SubscriptionHistory(emulator)
  const { all: requests, accessTokens } = new KeeperRequests(emulator, history)
  const roster = new RosterHistory(Array.from({ length: 12 }, (_, index) => `agent-${index}`))
  await using keepers = await KeeperProcesses.start({ emulator, redis, callbackUrl, roster: roster.names })
  const disturbances = new Disturbances(
    { emulator, keepers, random },
    { change: changeTheWorld, endSome, remove },
  )

  const deck = Object.entries(plan).flatMap(([each, times]) => new Array(times).fill(each as Disturbance))
  for (const disturbance of random.shuffled<Disturbance>(deck)) {
    await changeTheWorld()
    await disturbances[disturbance]()
  }
  // From here on nobody dies, so that nobody makes up for what another has missed.
  await disturbances.superseded()
  emulator.clearFaults()
  await disturbances.cutOffForLong()
  roster.change(random)
  await keepers.setRoster(roster.names)
  endAfterProof('create', 2)
  endAfterProof('update', 1)
  expect(keepers.kills).toBeGreaterThanOrEqual(50)
  const faultsEndedAt = Date.now()
  await expectNothingBroken()

  // How long that takes is up to the machine: its pauses count for more where time passes faster.
  await vi.waitFor(expectQuiet, { timeout: 150_000, interval: 500 })

  const reports = await keepers.reports()
  const gaps = gapsIn(reports)
  console.log(
    `${keepers.kills} killed, ${keepers.lives.length} processes, ${requests.length} requests, ${history.lifetimes.length} subscriptions, ` +
      `${gaps.length} gaps; settled ${Math.round((Date.now() - faultsEndedAt) / 1_000)} s after the last kill`,
  )
  expect(history.lifetimes.length).toBeGreaterThan(30)
  await expectNothingBroken()

  const inactivities = [...roster.names].flatMap((username) => inactivitiesOf(username))
  expect(inactivities.length).toBeGreaterThan(0)
  const untold = inactivities.filter((each) => !gaps.some((gap) => isWithin(each, gap)))
  expect(untold, untold.map(({ username }) => storyOf(username)).join('\n')).toEqual([])
  const untrue = gaps.filter((gap) => gap.cause === 'ended' && !isTrue(gap))
  expect(untrue, untrue.map(({ username }) => storyOf(username)).join('\n')).toEqual([])
  expect(emulator.subscriptions.filter(isForeign)).toEqual(foreignBefore)
  expectNoSecret(reports)
  const troubles = reports.filter((each) => each.kind === 'problem' && isUnfounded(each))
  expect(troubles).toEqual([])

  async function changeTheWorld(): Promise<void> {
    if (random.chance(0.7)) {
      roster.change(random)
      await keepers.setRoster(roster.names)
    }
    if (random.chance(0.6)) endSome(1)
    if (random.chance(0.4)) endAfterProof(random.oneOf(['create', 'update']), 1)
    emulator.clearFaults()
    // Creates take a while, so that kills fall between a request and its answer; some answers are lost.
    emulator.injectFault('create', { delayMs: 150 }, { times: 3 })
    if (random.chance(0.4)) emulator.injectFault('create', { reset: 'after-processing' })
    if (random.chance(0.2)) emulator.injectFault('update', { reset: 'after-processing' })
    if (random.chance(0.2)) emulator.injectFault('unsubscribe', { reset: 'after-processing' })
  }

  async function remove(username: string): Promise<void> {
    roster.remove(username)
    await keepers.setRoster(roster.names)
  }

  /** Ends the next subscriptions that are proven to exist, while the proof is on its way to the keeper. */
  function endAfterProof(by: 'create' | 'update', times: number): void {
    const proven = new Set<string | undefined>()
    const stop = emulator.on('request', ({ operation, status, path, body }) => {
      if (operation !== by || status !== (by === 'create' ? 409 : 200)) return
      const username = new URLSearchParams(body).get('username')
      const subscription = emulator.subscriptions.find((each) => {
        if (isForeign(each)) return false
        if (by === 'create') return each.usernames.join() === username
        return each.subscriptionId === Number(path.split('/').at(-1))
      })
      const name = subscription?.usernames.join()
      if (subscription === undefined || proven.has(name)) return
      proven.add(name)
      if (proven.size === times) stop()
      emulator.endSubscription(subscription.subscriptionId)
    })
  }

  function endSome(count: number): void {
    const own = emulator.subscriptions.filter((each) => !isForeign(each))
    for (const { subscriptionId } of random.shuffled(own).slice(0, count)) {
      emulator.endSubscription(subscriptionId)
    }
  }

  async function expectNothingBroken(): Promise<void> {
    const reports = await keepers.reports()
    const now = Date.now()
    const broken = violations({
      // What follows from the last ones may not have come to the store yet.
      requests: requests.filter(({ to }) => to < now - followMs),
      calls: reports.filter((each) => each.kind === 'call'),
      store: keepers.store,
      lives: keepers.lives,
      wanted: roster.wanted,
      storeFailures: storeFailuresIn(reports),
    })
    expect(broken, broken.join('\n')).toEqual([])
  }

  /** Everything is as it should be, and stays so: quiet, with proofs alone. */
  async function expectQuiet(): Promise<void> {
    expectAsWanted()
    const before = structuredClone(history.lifetimes)
    const sent = requests.length
    const told = await toldSoFar()
    await pause(quietMs)
    expect(history.lifetimes, keepers.output).toEqual(before)
    expect(await toldSoFar(), keepers.output).toEqual(told)
    const since = requests.slice(sent)
    expect(since.length).toBeGreaterThan(roster.names.size)
    expect(since.filter(({ kind, status }) => kind === 'unsubscribe' || status === 201)).toEqual([])
  }

  /** Gaps and troubles that began. */
  async function toldSoFar(): Promise<KeeperReport[]> {
    return (await keepers.reports()).filter(
      (each) => each.kind === 'gap' || (each.kind === 'problem' && !each.resolved),
    )
  }

  function expectAsWanted(): void {
    const own = emulator.subscriptions.filter((each) => !isForeign(each))
    const usernames = own.map((each) => each.usernames.join()).sort()
    expect(usernames, keepers.output).toEqual([...roster.names].sort())
    for (const { notificationTypes, parameters, callbackUrl: url } of own) {
      expect({ types: [...notificationTypes].sort(), parameters, url }).toEqual({
        types: ['behavioral', 'call-score'],
        parameters: { token: keepers.tokenOf(keepers.configuration) },
        url: callbackUrl,
      })
    }
    const ids = Object.fromEntries(own.map((each) => [each.usernames.join(), [each.subscriptionId]]))
    expect(storedIds(), keepers.output).toEqual(ids)
  }

  function isForeign({ subscriptionId }: { subscriptionId: number }): boolean {
    return foreignIds.has(subscriptionId)
  }

  /** What the store says of everybody: nothing is left of those who have gone. */
  function storedIds(): Record<string, (number | undefined)[]> {
    const { values } = keepers.store
    const { chunks } = JSON.parse(values.get('kept:head') ?? '{"chunks":0}')
    const ids: Record<string, (number | undefined)[]> = {}
    for (let index = 0; index < chunks; index++) {
      const { records }: StoredChunk = JSON.parse(values.get(`kept:chunk:${index}`) ?? '{"records":[]}')
      for (const { u: username, s: slots } of records) ids[username] = slots.map(({ i: id }) => id)
    }
    return ids
  }

  /** Nowhere in what was ever written, said or told; and no user's name in a key. */
  function expectNoSecret(reports: readonly KeeperReport[]): void {
    const { commands } = keepers.store
    expect([...new Set(commands.map(({ key }) => key))].join()).not.toMatch(/agent|newcomer/)
    const texts = {
      store: commands.map(({ value }) => value).join('\n'),
      logs: keepers.output,
      told: JSON.stringify(reports),
    }
    for (const secret of ['sesame', emulator.clientSecret, ...accessTokens]) {
      for (const text of Object.values(texts)) expect(text.includes(secret), secret).toBe(false)
    }
  }

  /** What cannot have happened here: nobody else was in the way, and only an earlier configuration is superseded. */
  function isUnfounded({ process: name, ...report }: KeeperReport): boolean {
    if (report.kind !== 'problem') return false
    if (report.code !== 'SUPERSEDED')
      return ['CONFLICT', 'ROSTER', 'STRAY', 'CREDENTIALS'].includes(report.code)
    return keepers.lives.some((life) => life.name === name && life.configuration === keepers.configuration)
  }

  /** Real times in which a process told that the store failed. */
  function storeFailuresIn(reports: readonly KeeperReport[]): Map<string, Span[]> {
    const failures = new Map<string, Span[]>()
    for (const report of reports) {
      if (report.kind !== 'problem' || report.code !== 'STORE' || report.resolved) continue
      const from = slowTime(keepers.clockStartedAt, report.sinceAt)
      failures.set(report.process, [...(failures.get(report.process) ?? []), { from, to: from }])
    }
    return failures
  }

  /** The times without a subscription of one who was wanted then. */
  function inactivitiesOf(username: string): Inactivity[] {
    const spans = roster.wanted.get(username) ?? []
    // One who comes back may be ended and forgotten as one who left, until the roster is read again.
    const since = (spans.at(-1)?.from ?? 0) + (spans.length > 1 ? rosterMs : 0)
    return history.inactivitiesOf(username).filter(({ from }) => from > since)
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

function gapsIn(reports: readonly KeeperReport[]): KeeperGap[] {
  return reports.flatMap((report) => (report.kind === 'gap' ? [report.gap] : []))
}
