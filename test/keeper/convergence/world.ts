/** A service, a store, and the processes whose keepers share them, in virtual time. */
import type { NotificationType } from 'notification-subscriber'
import {
  type KeeperGap,
  type KeeperProblem,
  SubscriptionKeeper,
  type SubscriptionKeeperOptions,
} from 'notification-subscriber/keeper'
import { Random } from '../../support/random.js'
import { ModelClient, type Network, type NetworkOutcome, type SentRequest } from './client.js'
import { checkRequest } from './request-rules.js'
import { ModelService, type ModelSubscription } from './service.js'
import { ModelStore } from './store.js'
import { currentProcess, VirtualProcess } from './virtual-process.js'
import { VirtualTime } from './virtual-time.js'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

export interface Configuration {
  readonly notificationTypes: readonly NotificationType[]
  readonly callbackUrl: string
  readonly parameters?: Readonly<Record<string, string>>
}

export interface WorldOptions {
  readonly seed: number
  readonly usernames: readonly string[]
  readonly processes?: number
  readonly hasCompareAndSet?: boolean
  readonly isStoreSynchronous?: boolean
  readonly configuration?: Configuration
  readonly keeper?: Partial<SubscriptionKeeperOptions>
}

export interface Node {
  readonly process: VirtualProcess
  readonly keeper: SubscriptionKeeper
  /** The newest that it was given. */
  configuration: Configuration
  /** Names of the problems that it reported and did not resolve. */
  readonly openProblems: string[]
}

/** What a keeper reported, and when that was in true time. */
export interface Reported<T> {
  readonly atMs: number
  readonly node: Node
  readonly what: T
}

/**
 * - `slow`: an answer takes up to half a minute, so that a later one may overtake it
 * - `halved`: lacks so many of more than ten users that it must not be believed
 */
export type RosterMode = 'working' | 'slow' | 'empty' | 'throwing' | 'hanging' | 'unreadable' | 'halved'

/** Part of every parameter's value. */
const secret = 's3cret'

const notification = {
  id: 'c0a1f5ee-0000-4000-8000-000000000000',
  time: 0,
  ver: '1.0',
  type: 'cxScoreUpdated',
  payload: {},
}

export const defaultConfiguration: Configuration = {
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl: 'https://app.example.com/notifications',
  parameters: { token: `${secret}-1` },
}

export class World implements Network {
  readonly time = new VirtualTime()
  readonly service = new ModelService(() => this.time.nowMs)
  readonly store: ModelStore
  readonly random: () => number
  readonly options: WorldOptions
  configuration: Configuration
  /** The users who are wanted, each with the time since when. */
  readonly wanted = new Map<string, number>()
  rosterMode: RosterMode = 'working'
  /** What becomes of every request during an outage. */
  outage: NetworkOutcome | undefined
  /** What becomes of the next requests. */
  readonly nextOutcomes: NetworkOutcome[] = []
  /** Rosters of processes that are out of date. */
  readonly oldRosters = new Map<VirtualProcess, readonly string[]>()
  /** Processes whose keeper is being stopped. */
  readonly stopping = new Set<VirtualProcess>()
  /** Whether the service has begun anew: an id may be of another user than the record says. */
  areIdsGivenAnew = false
  readonly formerConfigurations: Configuration[] = []
  /** The users for which the service refuses everything. */
  readonly refused = new Set<string>()
  hasWrongRoutes = false
  statusOfEnded = 404
  hadWrongRoutes = false
  isReceiverBroken = false
  readonly nodes: Node[] = []
  readonly requests: SentRequest[] = []
  readonly #requestsByUser = new Map<string | undefined, SentRequest[]>()
  /** The rosters that processes were given, the oldest first. */
  readonly rosterAnswers: {
    readonly atMs: number
    readonly process: VirtualProcess
    readonly names: ReadonlySet<string>
  }[] = []
  readonly gaps: Reported<KeeperGap>[] = []
  readonly problems: Reported<KeeperProblem>[] = []
  /** Everything that happened, for a person who looks for a reason. */
  readonly story: string[] = []
  /** What must never happen, and did. */
  readonly violations: string[] = []
  /** Whether an event may have left open what exists: a process died or stood still. */
  isUncertain = false
  /** Whether types, URL or names of parameters were changed. */
  isConfigurationNew = false
  /** Whether two wall clocks ever differed. */
  haveClocksJumped = false
  /** When something happened that may need requests: events, and processes that started. */
  readonly causesMs: number[] = []
  processCount = 0
  #secrets = 1

  constructor(options: WorldOptions) {
    this.options = options
    const numbers = new Random(options.seed)
    this.random = () => numbers.next()
    this.configuration = options.configuration ?? defaultConfiguration
    this.store = new ModelStore(this.time, {
      hasCompareAndSet: options.hasCompareAndSet ?? true,
      isSynchronous: options.isStoreSynchronous ?? false,
      random: this.random,
      onText: (key, text) => this.#refuseSecrets(`the store under ${key}`, text),
    })
    for (const name of options.usernames) this.wanted.set(name, 0)
  }

  get intervalMs(): number {
    return this.options.keeper?.sweepIntervalMs ?? 15 * minute
  }

  /** A keeper of another service on the same store, for a while. */
  startElsewhere(forMs: number): void {
    const process = new VirtualProcess(`lab ${++this.processCount}`, this.time, this.random)
    const network: Network = {
      service: new ModelService(() => this.time.nowMs),
      hasWrongRoutes: false,
      statusOfEnded: 404,
      send: () => ({ kind: 'answered' }),
      latencyMs: () => this.latencyMs(),
    }
    const client = Object.assign(new ModelClient(network, process), { service: 'https://lab.example.com' })
    const parts = { process, configuration: this.configuration, openProblems: [] }
    const ignore = { onGap: () => {}, onProblem: () => {}, logger: false as const }
    const keeper = process.run(
      () => new SubscriptionKeeper({ ...this.#keeperOptions(parts), ...ignore, client, usernames: ['lab'] }),
    )
    process.run(() => keeper.start())
    this.time.schedule(forMs, () => {
      const others = network.service.subscriptions.filter(({ usernames }) => usernames.join() !== 'lab')
      if (others.length > 0) this.violate(`a keeper of another service has subscribed ${others.length} users`)
      process.kill()
    })
  }

  // Users.

  want(username: string): void {
    if (!this.wanted.has(username)) this.wanted.set(username, this.time.nowMs)
  }

  end(usernames: readonly string[]): void {
    for (const { id } of usernames.flatMap((name) => this.subscriptionsOf(name)))
      this.service.end(id, 'service')
  }

  /** The active subscriptions that keepers made for a user. */
  subscriptionsOf(username: string): ModelSubscription[] {
    return this.service.activeFor(username).filter(({ owner }) => owner === 'keeper')
  }

  /** The service has a notification for a user: a callback for each subscription. */
  callback(username: string): void {
    for (const { id, callbackUrl } of this.subscriptionsOf(username)) {
      const node = this.node(Math.floor(this.random() * this.nodes.length))
      const isReceived =
        !this.isReceiverBroken && callbackUrl === this.configuration.callbackUrl && node?.process.isRunning
      this.service.callback(id, isReceived === true)
      if (isReceived)
        node.process.receive(20, () => node.keeper.observe(notification, { subscriptionId: id }))
    }
  }

  // Processes.

  /** @param starts - `false`: a program that calls methods of its keeper, and not `start()` */
  start(configuration = this.configuration, starts = true): Node {
    const name = `process ${++this.processCount}`
    const process = new VirtualProcess(name, this.time, this.random)
    const parts = { process, configuration, openProblems: [] }
    const keeper = process.run(() => new SubscriptionKeeper(this.#keeperOptions(parts)))
    const node = Object.assign(parts, { keeper })
    this.nodes.push(node)
    this.causesMs.push(this.time.nowMs)
    process.onDeath = () => this.nodes.splice(this.nodes.indexOf(node), 1)
    if (starts) process.run(() => keeper.start())
    return node
  }

  /** Which one, of any number. */
  node(index: number): Node | undefined {
    return this.nodes[index % Math.max(1, this.nodes.length)]
  }

  /** Runs code of a process, and lets time pass until the promise is settled. */
  async settled<T>(node: Node, code: (keeper: SubscriptionKeeper) => Promise<T>, limitMs = hour): Promise<T> {
    let isSettled = false
    const promise = node.process.run(() => code(node.keeper))
    promise
      .catch(() => {})
      .finally(() => {
        isSettled = true
      })
    for (let passedMs = 0; !isSettled && passedMs < limitMs; passedMs += second)
      await this.time.advance(second)
    if (!isSettled) throw new Error(`${node.process.name}: the call did not end within ${limitMs} ms`)
    return promise
  }

  newSecret(): string {
    return `${secret}-${++this.#secrets}`
  }

  // What the client asks.

  send(request: SentRequest): NetworkOutcome {
    this.log(
      `${request.process.name} sends ${request.kind} for ${request.username} ${request.subscriptionId ?? ''}`,
    )
    checkRequest(this, request)
    this.requests.push(request)
    this.#requestsByUser.set(request.username, [...this.requestsOf(request.username), request])
    if (this.outage !== undefined) return this.outage
    if (request.username !== undefined && this.refused.has(request.username))
      return { kind: 'status', status: 422 }
    return this.nextOutcomes.shift() ?? { kind: 'answered' }
  }

  requestsOf(username: string | undefined): readonly SentRequest[] {
    return this.#requestsByUser.get(username) ?? []
  }

  latencyMs(): number {
    return 5 + this.random() * 200
  }

  // What stories ask.

  /** Of each gap: the user, and the cause. */
  get causes(): string[] {
    return this.gaps.map(({ what: { username, cause } }) => `${username} ${cause}`)
  }

  get ids(): Record<string, number> {
    return Object.fromEntries(
      this.service.active('keeper').map(({ id, usernames }) => [usernames.join(), id]),
    )
  }

  /** The requests since then, without those before. */
  requestsSince(atMs: number): string[] {
    const sent = this.requests.filter((each) => each.atMs >= atMs)
    return sent.map(({ kind, username }) => `${kind} ${username}`)
  }

  // Reports.

  violate(what: string): void {
    this.violations.push(`${seconds(this.time.nowMs)} ${what}`)
  }

  log(what: string): void {
    this.story.push(`${seconds(this.time.nowMs)} ${what}`)
  }

  #keeperOptions(node: Omit<Node, 'keeper'>): SubscriptionKeeperOptions {
    const { process, configuration } = node
    const report = (what: string, fields: object) => {
      const text = `${process.name} ${what}: ${JSON.stringify(fields, withErrors)}`
      this.#refuseSecrets('a report', text)
      if (!process.isDead) this.log(text)
      return !process.isDead
    }
    const line = (fields: object, message: string) => void report(`logs "${message}"`, fields)
    return {
      client: new ModelClient(this, process),
      name: 'coaching',
      store: this.store.for(process),
      usernames: () => this.#askRoster(process),
      onGap: (gap) => {
        if (report('reports a gap', gap))
          this.gaps.push({ atMs: this.time.nowMs, node: node as Node, what: gap })
      },
      onProblem: (problem) => {
        if (report('reports a problem', problem)) this.#noteProblem(node as Node, problem)
      },
      logger: { debug: line, info: line, warn: line, error: line },
      ...configuration,
      ...this.options.keeper,
    }
  }

  #noteProblem(node: Node, what: KeeperProblem): void {
    this.problems.push({ atMs: this.time.nowMs, node, what })
    const { code, sinceAt, usernames, subscriptionId, resolved } = what
    const name = `${code} since ${sinceAt} of ${subscriptionId ?? 'others'}`
    const index = node.openProblems.indexOf(name)
    if (!resolved) {
      // Of the same users, once more users have it.
      if (index === -1 || usernames === undefined) node.openProblems.push(name)
    } else if (index === -1) this.violate(`${node.process.name} resolves what it did not report: ${name}`)
    else node.openProblems.splice(index, 1)
  }

  #askRoster(process: VirtualProcess): Promise<readonly string[]> {
    const mode = this.rosterMode
    const all = this.oldRosters.get(process) ?? [...this.wanted.keys()]
    // A roster that lacks more than half of more than ten users is not believed.
    const isHalved =
      mode === 'halved' && all.filter((name) => this.subscriptionsOf(name).length > 0).length > 12
    const latencyMs = this.random() * (mode === 'slow' ? 29_000 : 50)
    return process.operate(() => {
      if (mode === 'hanging') return new Promise<never>(() => {})
      return process.after(latencyMs, () => {
        if (mode === 'throwing') throw new Error('The roster cannot be read.')
        if (mode === 'unreadable') return '<html>' as unknown as string[]
        if (mode === 'empty') return []
        if (isHalved) return all.slice(0, all.length / 3)
        this.rosterAnswers.push({ atMs: this.time.nowMs, process, names: new Set(all) })
        return all
      })
    })
  }

  #refuseSecrets(where: string, text: string): void {
    if (text.includes(secret)) this.violate(`${currentProcess()?.name}: a secret in ${where}: ${text}`)
  }
}

/** JSON leaves out what errors say. */
function withErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value
  return { ...value, name: value.name, message: value.message, cause: value.cause }
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`
}
