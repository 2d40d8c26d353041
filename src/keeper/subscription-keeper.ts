/** Keeps a roster of users subscribed, whatever the service ends: see {@link SubscriptionKeeper}. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { UpdateSubscriptionParametersInput } from '../subscriptions/schemas.js'
import { Configuration, NewestConfiguration } from './configuration.js'
import { Deliveries, Incidents } from './deliveries.js'
import { KeeperStore } from './keeper-store.js'
import { CircuitBreaker, Limiter } from './limiter.js'
import { Members } from './members.js'
import { resolveOptions, validateCallOptions, validateRotation } from './options.js'
import { Reconciler } from './reconciler.js'
import { earlierStamp, isSettled } from './record.js'
import { Records } from './records.js'
import { Reporter } from './reporter.js'
import { Roster } from './roster.js'
import { Schedule } from './schedule.js'
import type { SweepRequest } from './sweep.js'
import type {
  KeeperStatus,
  KeptSubscription,
  RotationReport,
  SubscriptionKeeperOptions,
  SweepOptions,
  SweepReport,
} from './types.js'
import { type User, Users } from './users.js'

/**
 * Keeps a roster of users subscribed, each with a subscription of their own: notices when the service has ended one,
 * restores it, and says how long the gap was (docs/keeper.md). Everything it does runs in the async context in which it
 * was constructed.
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
 * await keeper.sweep()
 * keeper.start()
 * ```
 */
export class SubscriptionKeeper implements AsyncDisposable {
  readonly #inOwnContext = AsyncLocalStorage.snapshot()
  readonly #sweepIntervalMs: number
  readonly #reporter: Reporter
  readonly #store: KeeperStore
  readonly #users = new Users()
  readonly #newest: NewestConfiguration
  readonly #deliveries: Deliveries
  readonly #schedule: Schedule
  #stopping: Promise<void> | undefined

  /** @throws `ConfigurationError` that lists everything that is wrong with the options */
  constructor(options: SubscriptionKeeperOptions) {
    const resolved = resolveOptions(options)
    const { callbackUrl, headers, notificationTypes: types, parameters, sweepIntervalMs } = resolved
    const users = this.#users
    const reporter = new Reporter(resolved)
    const { problems } = reporter
    const store = new KeeperStore(resolved.store, resolved.name, problems)
    const spec = { types, callbackUrl: String(callbackUrl) }
    const own = new Configuration(spec, { parameters, headers })
    const newest = new NewestConfiguration(own, { store, users, problems })
    const members = new Members(store)
    const roster = new Roster({ ...resolved, users, members, problems })
    const records = new Records({ store, users, newest, reporter })
    const circuit = new CircuitBreaker(problems, () => users.size)
    const limiter = new Limiter(circuit, resolved)
    const incidents = new Incidents(problems, sweepIntervalMs)
    const shared = {
      ...resolved,
      store,
      users,
      newest,
      members,
      roster,
      records,
      circuit,
      incidents,
      reporter,
      problems,
    }
    const reconciler = new Reconciler({ ...shared, limiter })
    this.#deliveries = new Deliveries(shared)
    this.#schedule = new Schedule({ ...shared, reconciler, deliveries: this.#deliveries })
    this.#sweepIntervalMs = sweepIntervalMs
    this.#reporter = reporter
    this.#store = store
    this.#newest = newest
  }

  /**
   * Takes in a delivery as proof that its subscription exists. A handler for every notification, bound to its keeper:
   * `receiver.onAny(keeper.observe)`. Synchronous, and never throws.
   */
  readonly observe = (_notification: unknown, context: { readonly subscriptionId: number }): void => {
    this.#deliveries.observe(context?.subscriptionId, this.#schedule)
  }

  /**
   * Goes over the roster once, at full rate: afterwards everybody who is wanted is subscribed, but for the users in
   * `failed` of the report. Works in every process. Calls with equal options share a sweep that has not begun yet. A sweep
   * waits a minute for a service or a store that is down, and 130 seconds for users of a process that crashed. Users who
   * fail are no rejection.
   *
   * @throws `InvalidRequestError` for options that it does not know; the reason of `signal`, which ends this wait and not
   * the sweep
   */
  async sweep(options: SweepOptions = {}): Promise<SweepReport> {
    validateCallOptions('sweep', options)
    const { allowRemovals = false, onProgress, signal } = options
    const sharedAs = allowRemovals ? 'sweep with removals' : 'sweep'
    return untilAborted(this.#sweep({ allowRemovals, onProgress, sharedAs }), signal)
  }

  /**
   * Keeps watch from now on: a sweep at once, then everybody once per `sweepIntervalMs`. Users whom an earlier
   * {@link SubscriptionKeeper.sweep} has proven are not proven again. A keeper on watch keeps the process running until
   * {@link SubscriptionKeeper.stop}. Does nothing if the watch has begun already.
   */
  start(): void {
    this.#inOwnContext(() => this.#schedule.start())
  }

  /** Ends the watch, and a sweep before its next user; resolves when nothing is in flight. Subscriptions stay. */
  stop(): Promise<void> {
    this.#stopping ??= this.#inOwnContext(() => this.#schedule.stop()).finally(() => {
      this.#stopping = undefined
    })
    return this.#stopping
  }

  /** Same as {@link SubscriptionKeeper.stop}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /**
   * Gives every subscription new parameters or headers; those that are not named keep their values. The receiver may
   * forget the old secret when `pending` is empty. Deploy the new values before long: a process that starts with the
   * old ones brings them back (docs/keeper.md, Rotating the token).
   *
   * With several processes, call the method in each of them: those in which it was not called send nothing any more.
   *
   * @throws `InvalidRequestError` before anything is sent; `Error` if nothing could be done and this process knows no
   * user; the reason of `signal`, which ends this wait and not the sweep
   */
  async rotateParameters(
    values: UpdateSubscriptionParametersInput,
    options: Pick<SweepOptions, 'signal' | 'onProgress'> = {},
  ): Promise<RotationReport> {
    validateCallOptions('rotateParameters', options)
    const changes = validateRotation(values, (changed) => this.#newest.own.with(changed).values)
    this.#newest.rotate(changes)
    const { onProgress, signal } = options
    const report = await untilAborted(this.#sweep({ onProgress }), signal)
    const confirmed: string[] = []
    const pending = report.failed.map(({ username }) => username).filter((name) => !this.#users.get(name))
    for (const user of this.#users) {
      if (user.isWanted) (this.#isConfirmed(user) ? confirmed : pending).push(user.username)
    }
    if (pending.length === 0) this.#refuseIfNothingWasDone('rotateParameters')
    return { confirmed, pending }
  }

  /** Whether the callbacks of this user carry the present values, for certain. */
  #isConfirmed({ present, record }: User): boolean {
    const { generation, isKnown, isSuperseded } = this.#newest
    const isOnly = record?.subscriptions.length === 1 && record.claim === undefined
    return isKnown && !isSuperseded && isOnly && isSettled(present) && present.generation === generation
  }

  /** What a health check shows, from memory (docs/keeper.md, Health check and alert). */
  status(): KeeperStatus {
    const counts = { active: 0, unproven: 0, conflict: 0, failing: 0 }
    const proofs: (number | undefined)[] = []
    for (const { state, lastProvenAt } of this.subscriptions()) {
      counts[state]++
      proofs.push(lastProvenAt)
    }
    const oldestProofAt = proofs.reduce(earlierStamp, proofs[0])
    return { counts, oldestProofAt, problems: this.#reporter.problems.list() }
  }

  /** The subscription of one user, from memory; `undefined` for a user who is not kept. */
  subscription(username: string): KeptSubscription | undefined {
    const user = this.#users.get(username)
    return user?.isWanted ? user.shown(this.#sweepIntervalMs) : undefined
  }

  /** The subscriptions of all users who are kept, from memory. */
  *subscriptions(): IterableIterator<
    {
      /** The user. */
      readonly username: string
    } & KeptSubscription
  > {
    for (const user of this.#users) {
      if (user.isWanted) yield { username: user.username, ...user.shown(this.#sweepIntervalMs) }
    }
  }

  /**
   * Ends the watch, and then every subscription that the keeper made. Users with whom that failed are in `failed` of the
   * report: call the method again. Stop other processes first: one of them would subscribe everybody again.
   *
   * @throws `Error` if nothing could be done and this process knows no user; the reason of `signal`, which ends this wait
   * and not the sweep
   */
  async unsubscribeAll(options: Pick<SweepOptions, 'signal' | 'onProgress'> = {}): Promise<SweepReport> {
    validateCallOptions('unsubscribeAll', options)
    await this.stop()
    const { onProgress, signal } = options
    const report = await untilAborted(this.#sweep({ wantsNobody: true, onProgress }), signal)
    this.#refuseIfNothingWasDone('unsubscribeAll')
    return report
  }

  #sweep(request: SweepRequest): Promise<SweepReport> {
    return this.#inOwnContext(() => this.#schedule.sweep(request))
  }

  /** An empty report would say that nothing is left to do. */
  #refuseIfNothingWasDone(method: string): void {
    const isSuperseded = this.#newest.isSuperseded
    if (this.#users.size > 0 || (!isSuperseded && !this.#store.isFailing)) return
    const reason = isSuperseded ? 'another process has a newer configuration' : 'the store cannot be read'
    throw new Error(
      `${method} has done nothing, and this process knows no user: ${reason}. Call it again later.`,
    )
  }
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
