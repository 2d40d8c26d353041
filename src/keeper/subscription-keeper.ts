/** Keeps a roster of users subscribed: see {@link SubscriptionKeeper}. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { channelFor, traced } from '../shared/tracing.js'
import { Configuration } from './configuration.js'
import { IndexOfNames, KeeperStore } from './keeper-store.js'
import { Limiter, type StopSignal } from './limiter.js'
import {
  type ResolvedOptions,
  resolveOptions,
  type SubscriptionKeeperOptions,
  type SweepOptions,
  validateSweepOptions,
} from './options.js'
import { Processes } from './processes.js'
import { Queue } from './queue.js'
import { Reconciliation } from './reconcile.js'
import { Reporter } from './reporter.js'
import { KnownRoutes } from './request.js'
import { RosterReader } from './roster.js'
import { absorb } from './rules/record.js'
import { Sweep } from './sweep.js'
import { longAgo, now } from './timing.js'
import type { KeeperGap, KeeperStatus, KeptSubscription, SweepReport } from './types.js'
import { type User, Users } from './users.js'

const channel = channelFor('sweep')

/**
 * Keeps a roster of users subscribed, each with a subscription of their own. It finds subscriptions that the service has
 * ended, restores them, and reports each gap (docs/keeper.md). It runs in the async context of its constructor.
 *
 * @example
 * ```ts
 * const keeper = new SubscriptionKeeper({
 *   client,
 *   name: 'coaching',
 *   store: redisStore(redis),
 *   usernames: () => crm.agents(),
 *   notificationTypes: ['behavioral', 'call-score'],
 *   callbackUrl: 'https://app.example.com/notifications',
 *   parameters: { token },
 * })
 * receiver.onAny(keeper.observe)
 * server.listen(3000, () => keeper.start())
 * ```
 */
export class SubscriptionKeeper implements AsyncDisposable {
  readonly #inOwnContext = AsyncLocalStorage.snapshot()
  readonly #options: ResolvedOptions
  readonly #reporter: Reporter
  readonly #users: Users
  readonly #queue: Queue

  /** @throws `ConfigurationError` that lists every problem of the options */
  constructor(options: SubscriptionKeeperOptions) {
    const all = resolveOptions(options)
    const reporter = new Reporter(all)
    const { problems } = reporter
    const store = new KeeperStore(all.store, all.name, all.client.service, problems)
    const processes = new Processes(store)
    const index = new IndexOfNames(store)
    const users = new Users(store, index, processes, problems, all)
    const configuration = new Configuration(all, store, processes, users, problems)
    const limiter = new Limiter(all, store, processes, users, configuration, problems)
    const roster = new RosterReader(all, index, users, problems)
    const routes = new KnownRoutes(problems)
    const reconcile = (user: User, stopSignal: StopSignal) =>
      new Reconciliation(all, configuration, users, routes, limiter, reporter, user, stopSignal).reconcile()
    this.#options = all
    this.#reporter = reporter
    this.#users = users
    this.#queue = new Queue(all, store, processes, configuration, roster, users, limiter, reporter, reconcile)
  }

  /**
   * Records a delivery as proof that its subscription exists. A handler for every notification, bound to its keeper:
   * `receiver.onAny(keeper.observe)`; for tenants see docs/receiver.md, Secrets that change. Synchronous, and never throws.
   */
  readonly observe = (_notification: unknown, context: { readonly subscriptionId: number }): void => {
    this.#queue.observe(context?.subscriptionId)
  }

  /**
   * Reconciles every user once, at full rate. Afterwards every user of the roster is subscribed, except the users in
   * `failed` of the report, which cause no rejection. A roster that cannot be read is in `problems`. Calls at the same
   * time share their requests. A sweep waits a minute for a service or a store that is down, and 130 seconds for users
   * of a crashed process.
   *
   * @throws `InvalidRequestError` for unknown options
   */
  async sweep(options: SweepOptions = {}): Promise<SweepReport> {
    validateSweepOptions(options)
    return this.#sweep(now(), options)
  }

  /**
   * Starts the watch: a sweep at once, then each user once per `sweepIntervalMs`. Users that an earlier
   * {@link SubscriptionKeeper.sweep} has proven are not proven again. The watch keeps the process running until
   * {@link SubscriptionKeeper.stop}. Does nothing if the watch is running.
   */
  start(): void {
    this.#inOwnContext(() => this.#queue.watch(() => this.#sweep(longAgo)))
  }

  /** Ends the watch and running sweeps. No request is sent after it; requests in flight have 10 seconds. Subscriptions stay. */
  stop(): Promise<void> {
    return this.#inOwnContext(() => this.#queue.stop())
  }

  /** Same as {@link SubscriptionKeeper.stop}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** What the keeper knows, from memory (docs/keeper.md, Readiness and alerts). */
  status(): KeeperStatus {
    const counts = { active: 0, unproven: 0, conflict: 0, failing: 0 }
    // A user without a proof makes the result NaN.
    let oldestProofAt = Number.POSITIVE_INFINITY
    for (const { state, lastProvenAt = Number.NaN } of this.subscriptions()) {
      counts[state]++
      oldestProofAt = Math.min(oldestProofAt, lastProvenAt)
    }
    return {
      isReady: true,
      counts,
      oldestProofAt: Number.isFinite(oldestProofAt) ? oldestProofAt : undefined,
      problems: this.#reporter.problems.list(),
    }
  }

  /** The subscription of one user, from memory; `undefined` for an unknown user. */
  subscription(username: string): KeptSubscription | undefined {
    const user = this.#users.all.get(username)
    return user?.isWanted ? this.#kept(user) : undefined
  }

  /** The subscriptions of all users, from memory. */
  *subscriptions(): IterableIterator<Pick<KeeperGap, 'username'> & KeptSubscription> {
    for (const user of this.#users.all.values()) {
      if (user.isWanted) yield { username: user.username, ...this.#kept(user) }
    }
  }

  /**
   * Ends the watch, then every subscription of the keeper. If a user is in `failed` of the report, call the method again.
   * Stop other processes first: they would subscribe the users again.
   *
   * @throws `Error` if nothing could be done and this process knows no user
   */
  async unsubscribeAll(): Promise<SweepReport> {
    await this.stop()
    const report = await this.#sweep(now(), {}, true)
    const obstacle = report.problems.find(({ code }) => code === 'SUPERSEDED' || code === 'STORE')
    // An empty report would say that nothing is left to do.
    if (obstacle !== undefined && this.#users.all.size === 0)
      throw new Error(`unsubscribeAll has done nothing, and this process knows no user. ${obstacle.message}`)
    return report
  }

  #kept(user: User): KeptSubscription {
    const { proofSince, delivery, failures, record } = user
    const isSure = record?.id !== undefined && !record.idUnsure
    const isProven = isSure && now() - proofSince <= 2 * this.#options.sweepIntervalMs
    const known = record && absorb(record, delivery)
    const hasConflict = record?.id === undefined && record?.conflictAt !== undefined
    const state = hasConflict ? 'conflict' : isProven ? 'active' : 'unproven'
    return {
      subscriptionId: record?.id,
      state: failures > 0 ? 'failing' : state,
      lastProvenAt: known?.provenAt,
      lastDeliveryAt: known?.deliveryAt ?? delivery?.at,
      restoredCount: record?.restoredCount ?? 0,
    }
  }

  #sweep(provenSince: number, { onProgress }: SweepOptions = {}, wantsNone = false): Promise<SweepReport> {
    const reporter = this.#reporter
    const sweep = new Sweep(provenSince, wantsNone, (progress) => {
      if (onProgress !== undefined) reporter.call('onProgress', () => onProgress(progress))
    })
    const run = async (context: object | undefined) => {
      const startedSince = now()
      await this.#queue.run(sweep)
      const { counts, failed } = sweep
      const { active, ...others } = { ...counts, failed: failed.length }
      Object.assign(context ?? {}, others)
      const durationMs = Math.round(now() - startedSince)
      reporter.log('info', { event: 'sweep.done', ...others, active, durationMs }, 'A sweep is done')
      return { ...counts, failed, problems: reporter.problems.list() }
    }
    const contextOf = () => ({ name: this.#options.name })
    return this.#inOwnContext(() => traced<object, SweepReport>(channel, contextOf, run))
  }
}
