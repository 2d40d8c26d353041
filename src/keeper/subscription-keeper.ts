/**
 * Keeps a roster of users subscribed, whatever the service ends: see {@link SubscriptionKeeper}.
 *
 * How to read this room: first `user-record.ts`, what is known of a user; then the rules, which are pure functions.
 * `decide.ts` says what to do next for a user, `apply.ts` what the answer means, `follow-up.ts` when to come back.
 * `keeping.ts` puts together what carries them out:
 *
 * - A pass: `sweep-queue` -> `pass` (asks `tenure` whether it is this process that works, and `membership` who is
 *   wanted) -> for each user `visit` -> for each call `caller`: `record-store` (what the call may bring about is written
 *   first), `gate` (waits for its turn), the client, `classify`.
 * - Between passes `watch` visits who is due, in the order of `due-queue`.
 * - A delivery: `observe` -> `intake` -> `deliveries`, or `strays` for an id that nobody knows.
 * - Every half a minute: `heartbeat` -> `keeping` -> `tenure`, which renews the `lease` and looks which configuration is
 *   the newest: `generation-in-force`.
 * - In the store: `stored-head`, and under it a `chunk` for each hundred of `stored-record`; all through `store-access`.
 *   What a process knows that may write no more: `handover`.
 * - What the user is told: `problems`, in the words of `telling`; `circuit` and `outages` of the service's trouble,
 *   `incidents` of the receiver's.
 */
import { InvalidRequestError } from '../errors.js'
import { validate } from '../shared/issues.js'
import {
  type UpdateSubscriptionParametersInput,
  updateSubscriptionParametersInputSchema,
} from '../subscriptions/update-input.js'
import { Heartbeat } from './heartbeat.js'
import { validateCallOptions, validateKeeperOptions } from './keeper-option-schema.js'
import type {
  KeeperStatus,
  KeptSubscription,
  RotationReport,
  SubscriptionKeeperOptions,
  SweepOptions,
  SweepReport,
} from './keeper-types.js'
import { Keeping } from './keeping.js'
import { makePass, type PassRequest } from './pass.js'
import { keptSubscriptionOf, rotationReportOf, statusOf } from './status.js'
import { SweepQueue } from './sweep-queue.js'
import { Watch } from './watch.js'

/**
 * Keeps a roster of users subscribed, each with a subscription of their own: notices when the service has ended one,
 * restores it, and says how long the gap was (docs/keeper.md).
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
  readonly #keeping: Keeping
  readonly #watch: Watch
  readonly #sweeps: SweepQueue
  readonly #heartbeat: Heartbeat
  #stopping: Promise<void> | undefined

  /** @throws `ConfigurationError` that lists everything that is wrong with the options */
  constructor(options: SubscriptionKeeperOptions) {
    validateKeeperOptions(options)
    this.#keeping = new Keeping(options)
    this.#heartbeat = new Heartbeat(
      async () => {
        await this.#keeping.beat()
        this.#watch.look()
      },
      () => this.#watch.slept(),
    )
    this.#sweeps = new SweepQueue((request) => this.#makePass(request), this.#keeping.log)
    this.#watch = new Watch(this.#keeping, (provenSince) =>
      this.#sweeps.add({ provenSince, isOver: () => !this.#watch.isRunning }),
    )
  }

  /**
   * Takes in a delivery as proof that its subscription exists. A handler for every notification, bound to its keeper:
   * `receiver.onAny(keeper.observe)`. Synchronous, and never throws.
   */
  readonly observe = (_notification: unknown, context: { readonly subscriptionId: number }): void => {
    this.#keeping.intake.deliver(context?.subscriptionId)
  }

  /**
   * Makes one pass over the roster at full rate: afterwards all that is wanted exists, but for what the report names.
   * Calls with equal options share a pass that has not begun yet. Where another process keeps the roster, nothing is
   * done. Users who fail are no rejection: the report has them in `failed`.
   *
   * @throws the reason of `signal`, which ends this wait and not the pass
   */
  async sweep(options: SweepOptions = {}): Promise<SweepReport> {
    validateCallOptions('sweep', options)
    const { allowRemovals = false, onProgress, signal } = options
    const sharedAs = allowRemovals ? 'sweep with removals' : 'sweep'
    return untilAborted(this.#sweeps.add({ allowRemovals, onProgress, sharedAs }), signal)
  }

  /**
   * Keeps watch from now on: a pass at once, then everybody once per `sweepIntervalMs`. A keeper on watch keeps the
   * process running until {@link SubscriptionKeeper.stop}. Does nothing if the watch has begun already.
   */
  start(): void {
    if (this.#watch.isRunning) return
    this.#heartbeat.hold()
    this.#watch.start()
  }

  /**
   * Ends the watch, and a sweep before its next user: finishes what is in flight, and lets another process take over.
   * Subscriptions stay.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => {
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
   * With several processes, call the method in each of them: those in which it was not called stand aside for good.
   *
   * @throws `InvalidRequestError` before anything is sent; `Error` if the pass was not made and nobody is known; the
   * reason of `signal`, which ends this wait and not the pass
   */
  async rotateParameters(
    values: UpdateSubscriptionParametersInput,
    options: Pick<SweepOptions, 'signal' | 'onProgress'> = {},
  ): Promise<RotationReport> {
    validateCallOptions('rotateParameters', options)
    const changes = validate(updateSubscriptionParametersInputSchema, values, (issues, text) => {
      return new InvalidRequestError(`rotateParameters cannot do this: ${text}.`, { issues })
    })
    this.#keeping.tenure.reconfigure(changes)
    const { onProgress, signal } = options
    const report = await untilAborted(this.#sweeps.add({ onProgress }), signal)
    const rotation = rotationReportOf(this.#keeping, report)
    if (rotation.pending.length === 0) this.#refuseIfNothingIsKnown('rotateParameters')
    return rotation
  }

  /** What a health check shows, from memory (docs/keeper.md, Health check and alert). */
  status(): KeeperStatus {
    return statusOf(this.#keeping)
  }

  /** The subscription of one user, from memory; `undefined` for a user who is not kept. */
  subscription(username: string): KeptSubscription | undefined {
    return keptSubscriptionOf(this.#keeping, username)
  }

  /**
   * Ends the watch, and then every subscription that the keeper made. Users with whom that failed are in `failed` of the
   * report: call the method again. Stop other processes first: one of them would subscribe everybody anew.
   *
   * @throws `Error` if the pass was not made and nobody is known; the reason of `signal`, which ends this wait and not the pass
   */
  async unsubscribeAll(options: Pick<SweepOptions, 'signal' | 'onProgress'> = {}): Promise<SweepReport> {
    validateCallOptions('unsubscribeAll', options)
    await this.stop()
    const { onProgress, signal } = options
    const report = await untilAborted(this.#sweeps.add({ wanted: 'nobody', onProgress }), signal)
    this.#refuseIfNothingIsKnown('unsubscribeAll')
    return report
  }

  /** An empty report would say that nothing is left to do. */
  #refuseIfNothingIsKnown(method: string): void {
    const { tenure, records } = this.#keeping
    const reason = { blind: 'the store cannot be read', superseded: 'a newer configuration is at work' }
    const { standing } = tenure
    if ((standing !== 'blind' && standing !== 'superseded') || records.users.size > 0) return
    throw new Error(
      `${method} has done nothing, and this process knows of nobody: ${reason[standing]}. Call it again when that is over.`,
    )
  }

  async #makePass(request: PassRequest): Promise<SweepReport> {
    this.#heartbeat.hold()
    try {
      const startedSince = performance.now()
      const isOver = () => request.isOver() || (this.#stopping !== undefined && !this.#watch.isRunning)
      const report = await makePass(this.#keeping, { ...request, isOver })
      this.#watch.spread(startedSince)
      return report
    } finally {
      await this.#leaveIfLast()
    }
  }

  async #stop(): Promise<void> {
    const wasWatching = this.#watch.isRunning
    if (wasWatching) await this.#watch.stop()
    await this.#sweeps.inFlight
    if (wasWatching) await this.#leaveIfLast()
  }

  async #leaveIfLast(): Promise<void> {
    if (await this.#heartbeat.release()) await this.#keeping.tenure.leave()
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
