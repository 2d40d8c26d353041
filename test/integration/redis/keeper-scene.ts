/** Keepers in processes of their own on one Redis and one emulator, and what must be true of them in the end. */
import { setTimeout as pause } from 'node:timers/promises'
import { inspect, isDeepStrictEqual } from 'node:util'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, type SubscriptionRecord, startEmulator } from 'notification-subscriber/emulator'
import type { KeeperGap } from 'notification-subscriber/keeper'
import { expect, vi } from 'vitest'
import type { Random } from '../../support/random.js'
import type { RedisServer } from '../../support/redis-server.js'
import { fastMs, fastTime, timesFaster } from './fast-time.js'
import { KeeperProcesses, type KeeperReport } from './keeper-processes.js'
import { RosterHistory } from './roster-history.js'
import { type Inactivity, SubscriptionHistory } from './subscription-history.js'

const callbackUrl = 'https://app.example.com/notifications'
/** The keepers' `sweepIntervalMs`. */
const intervalMs = fastMs(60_000)
/** Clocks of processes show whole milliseconds, which count for more where time passes faster. */
const clockErrorMs = 10 * timesFaster
/** In this time the roster is read at least twice, also by a process that was just started. */
const rosterMs = 4 * intervalMs

export interface SceneOptions {
  readonly redis: RedisServer
  readonly random: Random
  readonly processes: number
}

export class Scene implements AsyncDisposable {
  readonly emulator: Emulator
  readonly keepers: KeeperProcesses
  readonly history: SubscriptionHistory
  readonly roster: RosterHistory
  #redisUrl: string
  readonly #random: Random
  readonly #foreign: readonly SubscriptionRecord[]
  /** Secrets that came along. */
  readonly #accessTokens = new Set<string>()

  private constructor(
    parts: Pick<Scene, 'emulator' | 'keepers' | 'history' | 'roster'>,
    { redis, random }: SceneOptions,
    foreign: readonly SubscriptionRecord[],
  ) {
    this.emulator = parts.emulator
    this.keepers = parts.keepers
    this.history = parts.history
    this.roster = parts.roster
    this.#redisUrl = redis.url
    this.#random = random
    this.#foreign = foreign
    this.emulator.on('request', ({ headers: { authorization = '' } }) => {
      if (authorization.startsWith('Bearer ')) this.#accessTokens.add(authorization.slice(7))
    })
  }

  static async start(options: SceneOptions): Promise<Scene> {
    const { redis, processes } = options
    // A token belongs to a process: it must outlive the process.
    const emulator = await startEmulator({ tokenLifetimeSeconds: 86_400 })
    await subscribeOthers(emulator)
    const foreign = [...emulator.subscriptions]
    const history = new SubscriptionHistory(emulator)
    const roster = new RosterHistory(Array.from({ length: 12 }, (_, index) => `agent-${index}`))
    const keepers = await KeeperProcesses.start({
      count: processes,
      emulator,
      redis,
      callbackUrl,
      roster: roster.names,
    })
    return new Scene({ emulator, keepers, history, roster }, options, foreign)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keepers[Symbol.asyncDispose]()
    await this.emulator[Symbol.asyncDispose]()
  }

  // What happens around the keepers.

  /** A little of everything. */
  async change(): Promise<void> {
    const random = this.#random
    if (random.chance(0.7)) await this.changeRoster()
    if (random.chance(0.6)) this.endSome(1)
    if (random.chance(0.4)) this.endAfterProof(random.oneOf(['create', 'update']), 1)
    this.emulator.clearFaults()
    // Creates take a while, so that kills fall between a request and its answer; some answers are lost.
    this.emulator.injectFault('create', { delayMs: 150 }, { times: 3 })
    if (random.chance(0.4)) this.emulator.injectFault('create', { reset: 'after-processing' })
    if (random.chance(0.2)) this.emulator.injectFault('update', { reset: 'after-processing' })
    if (random.chance(0.2)) this.emulator.injectFault('unsubscribe', { reset: 'after-processing' })
  }

  async changeRoster(): Promise<void> {
    this.roster.change(this.#random)
    await this.keepers.setRoster(this.roster.names)
  }

  async remove(username: string): Promise<void> {
    this.roster.remove(username)
    await this.keepers.setRoster(this.roster.names)
  }

  endSome(count: number): void {
    for (const { subscriptionId } of this.#random.shuffled(this.#own()).slice(0, count)) {
      this.emulator.endSubscription(subscriptionId)
    }
  }

  /** Ends the next subscriptions that are proven to exist, while the proof is on its way to the keeper. */
  endAfterProof(by: 'create' | 'update', times: number): void {
    const proven = new Set<string | undefined>()
    const stop = this.emulator.on('request', ({ operation, status, path, body }) => {
      if (operation !== by || status !== (by === 'create' ? 409 : 200)) return
      const username = new URLSearchParams(body).get('username')
      const subscription = this.#own().find((each) => {
        if (by === 'create') return each.usernames.join() === username
        return each.subscriptionId === Number(path.split('/').at(-1))
      })
      const name = subscription?.usernames.join()
      if (subscription === undefined || proven.has(name)) return
      proven.add(name)
      if (proven.size === times) stop()
      this.emulator.endSubscription(subscription.subscriptionId)
    })
  }

  // What must be true.

  async #fail(text: string, names: ReadonlySet<string>): Promise<never> {
    const standings = await this.#standings(names)
    throw new Error(
      this.#page(
        text,
        standings.filter(({ username }) => names.has(username)),
      ),
    )
  }

  /** What a person needs who looks for the reason: of three users, the last eight subscriptions; and what is logged. */
  #page(text: string, standings: readonly { readonly username: string }[]): string {
    const { clockStartedAt, lives, output } = this.keepers
    const users = standings.slice(0, 3).map((standing) => ({
      ...standing,
      lifetimes: this.history.of(standing.username).slice(-8),
    }))
    const names = [...standings.map(({ username }) => username), ...(text.match(/process-\d+/g) ?? [])]
    return [
      `${text}\nRANDOM_SEED=${this.#random.seed} repeats these moments. About: ${names.join(', ')}`,
      `Clocks started at ${clockStartedAt}, from which the log counts seconds; those of processes are ${timesFaster} times as fast.`,
      ...[...users, ...lives].map((each) => inspect(each, { depth: 9, breakLength: 200, compact: 9 })),
      ...output.filter((line) => names.some((name) => line.includes(name))).slice(-40),
      ...output.slice(-20),
    ].join('\n')
  }

  /**
   * Waits until there is one subscription for each user who is wanted and none for others, with the right parameters, and
   * every process and the store know its id; and until that stays so.
   *
   * @param redisUrl - of the present store
   * @param intervals - for how many of the keepers' intervals nothing may change
   */
  async expectSettled(redisUrl: string, { intervals = 2 } = {}): Promise<void> {
    this.#redisUrl = redisUrl
    const settled = async () => {
      expect((await this.#standings()).filter(({ isAsWanted }) => !isAsWanted)).toEqual([])
      const before = structuredClone(this.history.lifetimes)
      const sent = this.#proofs
      const reported = await this.#reportedSoFar()
      await pause(intervals * intervalMs)
      expect(this.history.lifetimes).toEqual(before)
      expect(await this.#reportedSoFar()).toEqual(reported)
      expect(this.#proofs - sent).toBeGreaterThan(this.roster.names.size)
    }
    try {
      await vi.waitFor(settled, { timeout: 150_000, interval: 500 })
    } catch (cause) {
      const standings = (await this.#standings()).filter(({ isAsWanted }) => !isAsWanted)
      throw new Error(this.#page('The keepers did not settle.', standings), { cause })
    }
  }

  /** Of every user who is wanted, or has a subscription or a record, and of others. */
  async #standings(others: Iterable<string> = []) {
    const { keepers } = this
    const stored = [...(await storedIn(this.#redisUrl))]
    const valuesOf = (prefix: string) =>
      stored.flatMap(([key, text]) => (key.startsWith(prefix) ? [JSON.parse(text)] : []))
    const records: { readonly username: string; readonly id?: number }[] = valuesOf('kept:user:')
    const index = new Set(valuesOf('kept:members:').flat())
    const reports = await Promise.all(
      keepers.upToDate.map(async (index) => (await keepers.known(index)).subscriptions),
    )
    const own = this.#own()
    const usernames = new Set([
      ...this.roster.names,
      ...own.map((each) => each.usernames.join()),
      ...records.map(({ username }) => username),
      ...others,
    ])
    const spec = { callbackUrl, parameters: { token: keepers.tokenOf(keepers.configuration) } }
    return Array.from(usernames, (username) => {
      const isWanted = this.roster.names.has(username)
      const isIndexed = index.has(username)
      const record = records.find((each) => each.username === username)
      const subscriptions = own
        .filter((each) => each.usernames.join() === username)
        .map(({ subscriptionId: id, notificationTypes, callbackUrl, parameters }) => {
          return { id, types: [...notificationTypes].sort(), callbackUrl, parameters }
        })
      const known = reports.map((report) => report.find((each) => each.username === username)?.subscriptionId)
      const id = record?.id
      const isKept = isDeepStrictEqual(
        { subscriptions, isIndexed, known: new Set(known) },
        {
          subscriptions: [{ id, types: ['behavioral', 'call-score'], ...spec }],
          isIndexed: true,
          known: new Set([id]),
        },
      )
      // Limits of docs/keeper.md: a process that had not read its roster subscribed a removed user, and died.
      const isGone = record === undefined ? subscriptions.length === 0 : !isIndexed
      const isAsWanted = isWanted ? isKept : isGone
      return { username, isWanted, subscriptions, record, isIndexed, known, isAsWanted }
    })
  }

  /** Every time without a subscription lies in a gap that was reported, and every end that was reported was one. */
  async expectGapsReported(): Promise<void> {
    const gaps = gapsIn(await this.keepers.reports())
    const inactivities = [...this.roster.names].flatMap((username) => this.#inactivitiesOf(username))
    expect(inactivities.length).toBeGreaterThan(0)
    const missing = inactivities.filter((each) => !gaps.some((gap) => this.#isWithin(each, gap)))
    const untrue = gaps.filter((gap) => gap.cause === 'ended' && !this.#isTrue(gap))
    const names = new Set([...missing, ...untrue].map(({ username }) => username))
    if (names.size > 0)
      await this.#fail(
        JSON.stringify({ missing, untrue, gaps: gaps.filter((gap) => names.has(gap.username)) }),
        names,
      )
  }

  expectOthersUntouched(): void {
    const ids = new Set(this.#foreign.map(({ subscriptionId }) => subscriptionId))
    expect(this.emulator.subscriptions.filter(({ subscriptionId }) => ids.has(subscriptionId))).toEqual(
      this.#foreign,
    )
  }

  /** Nowhere in what is stored, or was ever logged or reported; and no user's name in a key. */
  async expectNoSecret(): Promise<void> {
    const stored = await storedIn(this.#redisUrl)
    expect([...stored.keys()].join()).not.toMatch(/agent|newcomer/)
    const texts = {
      store: [...stored.values()].join('\n'),
      logs: this.keepers.output.join('\n'),
      reports: JSON.stringify(await this.keepers.reports()),
    }
    for (const secret of ['sesame', this.emulator.clientSecret, ...this.#accessTokens]) {
      for (const text of Object.values(texts)) expect(text.includes(secret), secret).toBe(false)
    }
  }

  /** No other program was in the way, and only an earlier configuration is superseded. */
  async expectNoUnfoundedProblem(): Promise<void> {
    const { keepers } = this
    const unfounded = (await keepers.reports()).filter((report) => {
      if (report.kind !== 'problem') return false
      if (report.code !== 'SUPERSEDED')
        return ['CONFLICT', 'ROSTER', 'STRAY', 'CREDENTIALS'].includes(report.code)
      return keepers.lives.some(
        (life) =>
          life.name === report.process && life.configuration === keepers.configuration && !report.resolved,
      )
    })
    expect(unfounded).toEqual([])
  }

  /** How many requests have asked for a proof that a subscription exists. */
  get #proofs(): number {
    const { create, update } = this.emulator.requestCounts
    return create + update
  }

  #own(): SubscriptionRecord[] {
    const ids = new Set(this.#foreign.map(({ subscriptionId }) => subscriptionId))
    return this.emulator.subscriptions.filter(({ subscriptionId }) => !ids.has(subscriptionId))
  }

  async #reportedSoFar(): Promise<KeeperReport[]> {
    return (await this.keepers.reports()).filter(
      (each) => each.kind === 'gap' || (each.kind === 'problem' && !each.resolved),
    )
  }

  /** The times without a subscription of one who was wanted then. */
  #inactivitiesOf(username: string): Inactivity[] {
    const spans = this.roster.wanted.get(username) ?? []
    // One who comes back may be ended and forgotten as one who left, until the roster is read again.
    const since = (spans.at(-1)?.from ?? 0) + (spans.length > 1 ? rosterMs : 0)
    return this.history.inactivitiesOf(username).filter(({ from }) => from > since)
  }

  #isWithin({ username, from, to }: Inactivity, gap: KeeperGap): boolean {
    const { lastProvenAt = Number.NEGATIVE_INFINITY, restoredAt } = gap
    return (
      gap.username === username &&
      lastProvenAt <= this.#fast(from) + clockErrorMs &&
      restoredAt >= this.#fast(to) - clockErrorMs
    )
  }

  #isTrue({ username, lastProvenAt = 0, restoredAt }: KeeperGap): boolean {
    return this.history.of(username).some(({ endedAt = Number.POSITIVE_INFINITY }) => {
      const at = this.#fast(endedAt)
      return at >= lastProvenAt - clockErrorMs && at <= restoredAt + clockErrorMs
    })
  }

  #fast(at: number): number {
    return fastTime(this.keepers.clockStartedAt, at)
  }
}

/** Subscriptions of others, which no keeper may touch. */
async function subscribeOthers(emulator: Emulator): Promise<void> {
  await using client = new NotificationClient(emulator.clientOptions)
  await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['another-user'],
    callbackUrl,
  })
  await client.createSubscription({
    notificationTypes: ['behavioral', 'call-score'],
    usernames: ['agent-0'],
    callbackUrl: `${callbackUrl}/elsewhere`,
  })
  await client.createSubscription({
    notificationTypes: ['conversation-ai'],
    usernames: ['agent-1', 'newcomer-1'],
    callbackUrl,
  })
}

/** Every key of a Redis with its text, and nothing that expires: users who were removed have no record. */
async function storedIn(url: string): Promise<Map<string, string>> {
  const redis = new Redis(url)
  try {
    const all = await redis.keys('kept:*')
    const texts = await Promise.all(
      all.map(async (key) => [key, await redis.get(key), await redis.pttl(key)]),
    )
    return new Map(texts.flatMap(([key, text, ttlMs]) => (ttlMs === -1 ? [[String(key), String(text)]] : [])))
  } finally {
    redis.disconnect()
  }
}

function gapsIn(reports: readonly KeeperReport[]): KeeperGap[] {
  return reports.flatMap((report) => (report.kind === 'gap' ? [report.gap] : []))
}
