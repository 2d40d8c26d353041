/** A service, a store, and the processes whose keepers share them, in virtual time. */
import type { NotificationType } from 'notification-subscriber'
import {
  type KeeperGap,
  type KeeperProblem,
  SubscriptionKeeper,
  type SubscriptionKeeperOptions,
} from 'notification-subscriber/keeper'
import { ModelClient, type Network, type SentRequest } from './client.js'
import { answered, type NetworkOutcome } from './network-outcomes.js'
import { askRoster, type RosterMode, type RosterRead } from './rosters.js'
import { Confirmations } from './rules/confirmations.js'
import { Knowledge } from './rules/knowledge.js'
import { RequestRules } from './rules/requests.js'
import { Sweeps } from './rules/sweeps.js'
import { isKept, ModelService, type ModelSubscription } from './service.js'
import { ModelStore } from './store.js'
import { currentProcess, randomFrom, VirtualProcess } from './virtual-process.js'
import { VirtualTime } from './virtual-time.js'

export interface Configuration {
  readonly notificationTypes: readonly NotificationType[]
  readonly callbackUrl: string
  readonly parameters?: Readonly<Record<string, string>>
}

export interface WorldOptions {
  readonly seed: number
  readonly usernames: readonly string[]
  /** How many are to run. */
  readonly processes?: number
  readonly hasCompareAndSet?: boolean
  readonly isStoreSynchronous?: boolean
  readonly configuration?: Configuration
  readonly keeper?: Partial<SubscriptionKeeperOptions>
}

/** A process with its keeper. */
export interface Node {
  readonly process: VirtualProcess
  readonly keeper: SubscriptionKeeper
  /** The newest that it was given. */
  configuration: Configuration
}

/** A gap or problem that a keeper reported, and when that was in true time. */
export interface Reported<T> {
  readonly atMs: number
  readonly node: string
  readonly process: VirtualProcess
  readonly what: T
}

/** A delivery that is taken in later than this was given up long before by the service. */
const lastingDeliveryMs = 60_000

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
  /** Since when that is the one that is wanted. */
  configuredAtMs = 0
  /** When it was changed by a rotation last. */
  rotatedAtMs = Number.NEGATIVE_INFINITY
  /** The processes that were told to rotate, and have not finished. */
  readonly rotating = new Set<VirtualProcess>()
  /** The users that are wanted, each with the time since when. */
  readonly wanted = new Map<string, number>()
  /** When each user was wanted for the first time. */
  readonly firstWanted = new Map<string, number>()
  rosterMode: RosterMode = 'working'
  /** While there are reasons, the roster has a name that the client refuses. */
  readonly invalidNames = new Set<object>()
  /** While there are reasons, the subscriptions of some users end again and again. */
  readonly repeatedEnds = new Set<object>()
  readonly rostersRead: RosterRead[] = []
  /** When each process asked for the roster last, whatever it got. */
  readonly rosterAskedMs = new Map<VirtualProcess, number>()
  /** What becomes of every request during an outage. */
  everyOutcome: (() => NetworkOutcome) | undefined
  /** The users for whom the service refuses everything. */
  readonly refused = new Set<string>()
  /** What becomes of the next requests. */
  readonly nextOutcomes: NetworkOutcome[] = []
  /** Whether callbacks of the service fail. */
  isReceiverBroken = false
  readonly nodes: Node[] = []
  /** Those whose keeper was stopped for a while. */
  readonly paused = new Set<Node>()
  /** Called when a process was killed. */
  onDeath: () => void = () => {}
  readonly requests: SentRequest[] = []
  /** What was observed. */
  readonly deliveries: { readonly atMs: number; readonly username: string | undefined }[] = []
  readonly gaps: Reported<KeeperGap>[] = []
  readonly endedByOperator = new Set<number>()
  readonly problems: Reported<KeeperProblem>[] = []
  readonly logged: string[] = []
  /** What must never happen, and did. */
  readonly violations: string[] = []
  /** Every process that there ever was. */
  readonly processes: VirtualProcess[] = []
  readonly knowledge = new Knowledge(this)
  readonly sweeps = new Sweeps(this)
  /** When a request took effect last that was sent long before. */
  lateEffectAtMs = 0
  tokenRequests = 0
  readonly confirmations = new Confirmations(this)
  /** The events so far. */
  readonly happened: string[] = []
  #processes = 0
  #secrets = 1
  readonly rules = new RequestRules(this)

  constructor(options: WorldOptions) {
    this.options = options
    this.random = randomFrom(options.seed)
    this.configuration = options.configuration ?? defaultConfiguration
    this.store = new ModelStore(this.time, {
      hasCompareAndSet: options.hasCompareAndSet ?? true,
      isSynchronous: options.isStoreSynchronous ?? false,
      random: this.random,
      onText: (key, text) => this.#checkStored(key, text),
      onLoss: () => this.knowledge.noteLost(),
    })
    for (const name of options.usernames) {
      this.wanted.set(name, 0)
      this.firstWanted.set(name, 0)
    }
  }

  // What happens to the users.

  want(username: string): void {
    if (this.wanted.has(username)) return
    this.wanted.set(username, this.time.nowMs)
    if (!this.firstWanted.has(username)) this.firstWanted.set(username, this.time.nowMs)
  }

  wantNoLonger(username: string): void {
    this.wanted.delete(username)
  }

  // What happens to processes.

  /** @param starts - `false`: a program that calls the methods of its keeper, and not `start()` */
  start(configuration = this.configuration, starts = true): Node {
    const name = `process ${++this.#processes}`
    const process = new VirtualProcess(name, this.time, {
      monotonicStartMs: Math.floor(this.random() * 1e7),
      random: this.random,
    })
    this.processes.push(process)
    const keeper = process.run(() => new SubscriptionKeeper(this.#keeperOptions(process, configuration)))
    const node: Node = { process, keeper, configuration }
    this.nodes.push(node)
    process.onDeath = () => {
      this.nodes.splice(this.nodes.indexOf(node), 1)
      this.knowledge.noteLost()
      this.onDeath()
    }
    this.knowledge.noteLost()
    if (starts) process.run(() => keeper.start())
    return node
  }

  /** Runs code of a process until it waits, and on for as long as the promise takes, but not for ever. */
  async settled<T>(
    node: Node,
    code: (keeper: SubscriptionKeeper) => Promise<T>,
    limitMs = 3_600_000,
  ): Promise<T> {
    let result: { readonly value: T } | { readonly error: unknown } | undefined
    node.process.run(() => {
      code(node.keeper).then(
        (value) => {
          result = { value }
        },
        (error: unknown) => {
          result = { error }
        },
      )
    })
    const end = this.time.nowMs + limitMs
    while (result === undefined && this.time.nowMs < end) await this.time.advance(1_000)
    if (result === undefined) throw new Error(`Nothing settled it within ${limitMs / 1_000} s.`)
    if ('error' in result) throw result.error
    return result.value
  }

  async stop(node: Node): Promise<void> {
    await this.settled(node, (keeper) => keeper.stop())
    node.process.kill()
  }

  kill(node: Node): void {
    node.process.kill()
  }

  /** One of the living processes. */
  node(index: number): Node | undefined {
    return this.nodes[index % Math.max(1, this.nodes.length)]
  }

  /** Another configuration is wanted from now on. */
  configure(configuration: Configuration): void {
    this.configuration = configuration
    this.configuredAtMs = this.time.nowMs
    this.confirmations.forget()
    this.knowledge.noteLost()
  }

  newSecret(): string {
    return `${secret}-${++this.#secrets}`
  }

  // What happens at the service.

  /** Ends the subscriptions of some users, or of all. */
  end(usernames: readonly string[]): void {
    for (const name of usernames) {
      for (const { id, createdBy } of [...this.service.activeFor(name)]) {
        if (createdBy === 'keeper') this.service.end(id)
      }
    }
  }

  /** A callback for a user: what the receiver sees of it, a keeper observes. */
  callback(username: string, observedAfterMs = 20): void {
    const subscription = this.service.activeFor(username).find(({ createdBy }) => createdBy === 'keeper')
    if (subscription === undefined) return
    this.service.callback(subscription.id, !this.isReceiverBroken)
    this.observe(subscription.id, observedAfterMs)
  }

  /** Somebody who shares the service takes the place of a user's subscription that has just ended. */
  subscribeSomebodyElse(usernames: readonly string[]): void {
    this.end(usernames)
    const { notificationTypes, callbackUrl } = this.configuration
    const request = {
      usernames: [...new Set(usernames)],
      notificationTypes,
      callbackUrl,
      recreateIfExists: false,
    }
    this.service.create({ ...request, parameters: {} }, 'somebody else')
  }

  unsubscribeSomebodyElse(): void {
    for (const { id, createdBy } of this.service.active()) {
      const isBystander = this.bystanders.some((each) => each.id === id)
      if (createdBy === 'somebody else' && !isBystander) this.service.unsubscribe(id, 'somebody else')
    }
  }

  /** What nobody knows any more, and is not as wanted now: an operator ends it, as a `STRAY` or a `CONFLICT` says. */
  unsubscribeLost(): void {
    for (const subscription of this.service.active().filter(isKept)) {
      const { lostIds } = this.knowledge
      const isUnknown =
        this.knowledge.isLost(subscription) ||
        this.knowledge.isOrphan(subscription.id) ||
        lostIds.has(subscription.id)
      if (isUnknown && !this.isAsConfigured(subscription)) this.endByOperator(subscription.id)
    }
  }

  /** An operator ends what a `STRAY` or a `CONFLICT` names. */
  endByOperator(id: number): void {
    this.endedByOperator.add(id)
    this.service.unsubscribe(id, 'somebody else')
  }

  observe(subscriptionId: number, afterMs: number): void {
    const nodes = this.nodes.filter(({ process }) => process.isRunning)
    const node = nodes[Math.floor(this.random() * nodes.length)]
    if (node === undefined) return
    const sentMs = this.time.nowMs
    node.process.receive(afterMs, () => {
      // A delivery is a proof of the time a minute before: none waits longer in the socket of a process that sleeps.
      if (this.time.nowMs - sentMs > lastingDeliveryMs) return
      const username = this.service.subscriptions.find(({ id }) => id === subscriptionId)?.usernames[0]
      this.deliveries.push({ atMs: this.time.nowMs, username })
      node.keeper.observe(notification, { subscriptionId })
    })
  }

  /** Somebody's subscriptions that are in nobody's way, and are to be left alone. */
  readonly bystanders: ModelSubscription[] = []

  subscribeBystanders(usernames: readonly string[]): void {
    const { notificationTypes, callbackUrl } = this.configuration
    const requests = [
      { usernames: ['bystander'], callbackUrl },
      ...usernames.map((name) => ({ usernames: [name], callbackUrl: 'https://other.example.com/' })),
    ]
    for (const request of requests) {
      const parameters = { token: 'of somebody else' }
      const answer = this.service.create(
        { ...request, notificationTypes, parameters, recreateIfExists: false },
        'somebody else',
      )
      const made = answer.status === 201 ? this.service.find(answer.id) : undefined
      if (made !== undefined) this.bystanders.push(made)
    }
  }

  // What the client asks.

  send(request: SentRequest): NetworkOutcome {
    this.rules.check(request)
    this.requests.push(request)
    if (this.everyOutcome !== undefined) return this.everyOutcome()
    if (request.username !== undefined && this.refused.has(request.username))
      return { kind: 'status', status: 422 }
    return this.nextOutcomes.shift() ?? answered
  }

  performed(request: SentRequest): void {
    // Slower than any request that nothing is wrong with.
    if (this.time.nowMs - request.atMs > 1_000) this.lateEffectAtMs = this.time.nowMs
    if (request.username !== undefined) this.confirmations.check(request.username)
    this.rules.checkReplacement(request)
  }

  tokenRequested(): void {
    this.tokenRequests++
  }

  callBegins(process: VirtualProcess, username: string | undefined): void {
    this.rules.callBegins(process, username)
  }

  callEnds(process: VirtualProcess, username: string | undefined): void {
    this.rules.callEnds(process, username)
  }

  latencyMs(): number {
    return 5 + this.random() * 200
  }

  /** The requests sent since a time. */
  requestsSince(ms: number): SentRequest[] {
    const requests: SentRequest[] = []
    for (let index = this.requests.length - 1; index >= 0; index--) {
      const request = this.requests[index] as SentRequest
      if (request.atMs < ms) break
      requests.push(request)
    }
    return requests.reverse()
  }

  violate(process: VirtualProcess, what: string): void {
    if (!process.isDead) this.violations.push(`${seconds(this.time.nowMs)} ${process.name}: ${what}`)
  }

  #keeperOptions(process: VirtualProcess, configuration: Configuration): SubscriptionKeeperOptions {
    const reported = <T>(what: T): Reported<T> => {
      this.#refuseSecrets('a report', JSON.stringify(what, withErrors))
      return { atMs: this.time.nowMs, node: process.name, process, what }
    }
    const line = (fields: object, message: string) => {
      const text = `${message} ${JSON.stringify(fields, withErrors)}`
      this.#refuseSecrets('the log', text)
      if (!process.isDead) this.logged.push(`${seconds(this.time.nowMs)} ${process.name}: ${text}`)
    }
    return {
      client: new ModelClient(this, process),
      name: 'coaching',
      store: this.store.for(process),
      usernames: () => askRoster(this, process),
      onGap: (gap) => {
        if (!process.isDead) this.gaps.push(reported(gap))
      },
      onProblem: (problem) => {
        if (!process.isDead) this.problems.push(reported(problem))
      },
      logger: { debug: line, info: line, warn: line, error: line },
      ...configuration,
      ...this.options.keeper,
    }
  }

  /** Nothing happens any more, and nobody who dies is replaced. */
  haveFaultsEnded = false

  /** Whether the keepers were told to end all subscriptions. */
  isSayingGoodbye = false

  isAsConfigured(
    { notificationTypes, callbackUrl }: ModelSubscription,
    wanted: Configuration = this.configuration,
  ): boolean {
    return (
      callbackUrl === wanted.callbackUrl &&
      notificationTypes.length === wanted.notificationTypes.length &&
      notificationTypes.every((type) => (wanted.notificationTypes as readonly string[]).includes(type))
    )
  }

  #checkStored(key: string, text: string): void {
    this.#refuseSecrets('the store', text)
    const process = currentProcess()
    const name = this.processes.length > 0 && [...this.wanted.keys()].find((each) => key.includes(each))
    if (name && process !== undefined) this.violate(process, `the name ${name} in the key ${key}`)
  }

  #refuseSecrets(where: string, text: string): void {
    const process = currentProcess()
    if (text.includes(secret) && process !== undefined) this.violate(process, `a secret in ${where}: ${text}`)
  }
}

/** Whether no wall clock was ever set. */
export function haveSameClock({ processes }: World): boolean {
  return processes.every(({ wallSkews }) => wallSkews.length === 1)
}

/** JSON leaves out what errors say. */
function withErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value
  return { ...value, name: value.name, message: value.message, cause: value.cause }
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`
}
