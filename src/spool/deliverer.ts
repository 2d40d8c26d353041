/** Takes deliveries from the disk, a few at a time, and calls `deliver` until it succeeds. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import type { InvalidDeliveryError } from '../errors.js'
import { describeError } from '../logger.js'
import { channelFor, traced } from '../shared/tracing.js'
import { type DeliveryParser, logFieldsOf } from '../webhooks/parse.js'
import type { Delivery, PayloadSchemas } from '../webhooks/schemas.js'
import type { Entry } from './segment.js'
import type { DeliveryAttempt, DeliverySpoolOptions, StuckDelivery } from './spool-options.js'
import { defaults } from './spool-options.js'
import type { SpoolStore } from './spool-store.js'

/** Failures are reported to `onStuck` from this failure on, once in each interval. */
const firstReportedFailure = 10
const reportIntervalMs = 3_600_000

/** After this many failures without a success, one attempt per interval tests whether `deliver` works again. */
const failuresOfAnOutage = 32
const outageIntervalMs = 5_000

/** If this many processes ended during a delivery, the delivery becomes a dead letter. */
const maxCrashes = 3

const channel = channelFor('deliver')

export class Deliverer<Payloads extends PayloadSchemas> {
  readonly #concurrency: number
  /** How many deliveries an ended process may have had in flight: this many are delivered one at a time first. */
  #inFlightBefore: number
  /** The attempts in flight: at most `concurrency`. Each stays until the outcome of its entry is on the disk. */
  readonly #running = new Set<Promise<void>>()
  /** Abort the calls in flight. */
  readonly #aborts = new Set<(reason: Error) => void>()
  /** How much of the concurrency repetitions take. */
  #repetitions = 0
  /** How many attempts have failed since the last success. Repetitions do not count while new deliveries wait. */
  #failures = 0
  /** In an outage: when the next attempt may begin, and whether the last one was a repetition. */
  #nextAttemptFrom = 0
  #wasRepetition = false
  /** Runs everything in the async context of `open`, not in that of an arriving delivery. */
  readonly #inContext = AsyncLocalStorage.snapshot()
  #timer: NodeJS.Timeout | undefined
  #starting: Promise<void> | undefined
  #hasWork = false
  #isStopped = false

  constructor(
    private readonly store: SpoolStore,
    private readonly parser: DeliveryParser<Payloads>,
    private readonly options: DeliverySpoolOptions<Payloads>,
  ) {
    this.#concurrency = options.concurrency ?? defaults.concurrency
    this.#inFlightBefore = store.lock.inFlightBefore
  }

  /** Starts what may be delivered, once per turn of the event loop. Call it after keeping a delivery. */
  wakeUp(): void {
    this.#hasWork = true
    this.#starting ??= this.#inContext(() => this.#startAll())
  }

  async #startAll(): Promise<void> {
    while (this.#hasWork && !this.#isStopped) {
      await setImmediate()
      this.#hasWork = false
      while (this.#running.size < (this.#inFlightBefore > 0 ? 1 : this.#concurrency)) {
        const entry = await this.#next()
        // An entry that was taken when the spool stopped stays on the disk.
        if (entry === undefined || this.#isStopped) break
        this.#run(entry)
      }
    }
    this.#starting = undefined
  }

  #wakeUpAt(at: number): void {
    clearTimeout(this.#timer)
    if (at === Number.POSITIVE_INFINITY || this.#isStopped) return
    this.#timer = setTimeout(() => this.wakeUp(), at - this.store.now())
  }

  /** The next entry that may be delivered; without one, sets the timer for the next due time. */
  async #next(): Promise<Entry | undefined> {
    if (this.#inFlightBefore > 0) {
      const entry = await this.store.takeNew()
      if (entry) return entry
      this.#inFlightBefore = 0
    }
    const isOutage = this.#failures >= failuresOfAnOutage
    if (isOutage && this.store.now() < this.#nextAttemptFrom) {
      this.#wakeUpAt(this.#nextAttemptFrom)
      return undefined
    }
    // At most half: deliveries that keep failing, or never end, must not delay others.
    const mayRepeat = this.#repetitions < Math.max(1, Math.floor(this.#concurrency / 2))
    const takeFailed = async () => (mayRepeat ? this.store.takeFailed() : undefined)
    const takeNew = () => this.store.takeNew()
    // In an outage new and failed deliveries take turns: either kind alone may fail for a reason of its own.
    const isNewFirst = isOutage && this.#wasRepetition
    const [first, second] = isNewFirst ? [takeNew, takeFailed] : [takeFailed, takeNew]
    const entry = (await first()) ?? (await second())
    if (entry === undefined && mayRepeat) this.#wakeUpAt(this.store.nextDueAt)
    return entry
  }

  #run(entry: Entry): void {
    this.#wasRepetition = entry.attempts > 0
    this.#nextAttemptFrom = this.store.now() + outageIntervalMs
    // While an entry that has ended processes is in flight, new entries are delivered, and none is repeated.
    const share = entry.crashes > 0 ? this.#concurrency : Math.min(entry.attempts, 1)
    this.#repetitions += share
    const attempt = this.#attempt(entry).finally(() => {
      this.#inFlightBefore = Math.max(0, this.#inFlightBefore - 1)
      this.#repetitions -= share
      this.#running.delete(attempt)
      this.wakeUp()
    })
    this.#running.add(attempt)
  }

  /** Delivers an entry once. Never rejects: the entry stays on the disk until its work is done. */
  async #attempt(entry: Entry): Promise<void> {
    if (entry.crashes >= maxCrashes) {
      // Not parsed again: a schema may have ended the processes.
      const delivery: Delivery<Payloads> = JSON.parse(entry.text)
      return this.#fail(entry, delivery, new Error('The process ended 3 times during this delivery.'))
    }
    const isRepeated = entry.attempts > 0
    const attempt = entry.attempts + 1
    // Counted before the attempt, in case the process ends. A new entry may have been in flight when an earlier process ended.
    const isCounted = isRepeated || this.#inFlightBefore > 0
    const crashes = entry.crashes + (isRepeated ? 1 : 2)
    if (isCounted) await this.store.writeState({ ...entry, attempts: attempt, crashes })
    const { data, error } = this.parser.safeParse(entry.text)
    if (error) return this.#rejectUnreadable(entry, error)
    const startedSince = performance.now()
    try {
      await traced(
        channel,
        () => ({ ...logFieldsOf(data), attempt }),
        () => this.#withTimeLimit((given) => this.options.deliver(data, given), entry.traceparent),
      )
    } catch (reason) {
      // `close` ended the attempt: its outcome is unknown, so it does not count.
      if (this.store.isEnding) return isCounted ? this.store.writeState(entry) : undefined
      // While new deliveries succeed, failed repetitions are no sign of an outage: many may be due at once.
      if (!isRepeated || !this.store.hasNew) this.#failures += 1
      return this.#fail(entry, data, reason)
    }
    this.#failures = 0
    const durationMs = Math.round(performance.now() - startedSince)
    const fields = { attempt, durationMs, receivedAt: entry.receivedAt, ...logFieldsOf(data) }
    this.store.folder.reports.toLogger('debug', { event: 'spool.delivered', ...fields }, 'Delivered')
    await this.store.remove(entry)
  }

  async #rejectUnreadable(entry: Entry, { issues }: InvalidDeliveryError): Promise<void> {
    const isKept = await this.store.makeDeadLetter(entry, 'unreadable', { issues })
    if (!isKept) return this.store.postpone(entry)
    const fields = { letterId: entry.id, receivedAt: entry.receivedAt, issues }
    const message = 'A kept delivery cannot be read any more, and is now a dead letter'
    this.store.folder.reports.always('error', { event: 'spool.unreadable', ...fields }, message)
  }

  /** Repeats a failed delivery, or does what `onStuck` says, which is called once in an interval. */
  async #fail(entry: Entry, delivery: Delivery<Payloads>, error: unknown): Promise<void> {
    const { toLogger, perMinute } = this.store.folder.reports
    // Never delivered again, also if the dead letter must wait for disk space.
    const isFatal = entry.crashes >= maxCrashes
    const attempts = entry.attempts + 1
    const fields = { ...logFieldsOf(delivery), attempts, receivedAt: entry.receivedAt, err: error }
    const failed = { event: 'spool.failed', ...fields }
    if (!isFatal) perMinute('warn', failed, 'Delivering failed, will be repeated')
    const isStuck = isFatal || attempts >= firstReportedFailure
    const stuck = { delivery, attempts, sinceAt: entry.receivedAt, error }
    const answer = isStuck ? await this.#report(entry, stuck, fields) : undefined
    if (answer === 'discard') {
      toLogger('warn', { event: 'spool.discarded', ...fields }, 'A delivery is given up, as onStuck says')
      return this.store.remove(entry)
    }
    if (answer === 'dead-letter' || isFatal) {
      const { name, message } = describeError(error)
      if (await this.store.makeDeadLetter(entry, 'stuck', { error: { name, message } })) {
        const letter = { event: 'spool.dead-lettered', ...fields, letterId: entry.id }
        return toLogger('warn', letter, 'A delivery is now a dead letter')
      }
    }
    await this.store.postpone(entry)
  }

  /** Calls `onStuck` once in an interval, and resolves with its result. */
  async #report(entry: Entry, stuck: StuckDelivery<Payloads>, fields: object): Promise<unknown> {
    const { toLogger, always } = this.store.folder.reports
    if (this.store.now() - entry.reportedAt < reportIntervalMs) return undefined
    // Written first, in case `onStuck` ends the process.
    entry.reportedAt = this.store.now()
    await this.store.writeState(entry)
    const log = this.options.onStuck ? toLogger : always
    log('error', { event: 'spool.stuck', ...fields }, 'A delivery is stuck')
    return this.#withTimeLimit(() => this.options.onStuck?.(stuck)).catch((err) => {
      always('error', { event: 'spool.callback-failed', callback: 'onStuck', err }, 'onStuck failed')
    })
  }

  /** Settles as a function does. @throws a `DOMException` after `deliverTimeoutMs`, or when the spool closes */
  async #withTimeLimit<T>(call: (attempt: DeliveryAttempt) => T, traceparent?: string): Promise<Awaited<T>> {
    const { deliverTimeoutMs = defaults.deliverTimeoutMs } = this.options
    let abort = (_reason: Error) => {}
    const aborted = new Promise<never>((_, reject) => {
      abort = reject
    })
    const message = `The call took longer than \`deliverTimeoutMs\`, ${deliverTimeoutMs} ms.`
    const timer = setTimeout(() => abort(new DOMException(message, 'TimeoutError')), deliverTimeoutMs)
    this.#aborts.add(abort)
    let controller: AbortController | undefined
    const attempt: DeliveryAttempt = {
      traceparent,
      // Made when it is read: an AbortController takes a fifth of the time of a delivery.
      get signal() {
        controller ??= new AbortController()
        aborted.catch((reason) => controller?.abort(reason))
        return controller.signal
      },
    }
    try {
      return await Promise.race([call(attempt), aborted])
    } finally {
      clearTimeout(timer)
      this.#aborts.delete(abort)
    }
  }

  /** Starts no further attempt. */
  pause(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Starts no further attempt, and waits for the attempts in flight; aborts them after `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    this.pause()
    const reason = new DOMException('The spool is closed.', 'AbortError')
    const timer = setTimeout(() => {
      this.store.isEnding = true
      for (const abort of this.#aborts) abort(reason)
    }, timeoutMs)
    await this.#starting
    await Promise.all(this.#running)
    clearTimeout(timer)
  }
}
