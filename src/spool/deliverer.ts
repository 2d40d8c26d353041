/** Takes deliveries from the disk, a few at a time, and calls `deliver` until it succeeds. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import type { InvalidDeliveryError } from '../errors.js'
import { excerpt, messageOf } from '../shared/text.js'
import { channelFor, traced } from '../shared/tracing.js'
import { type Backoff, backoffMs } from '../shared/waits.js'
import { type DeliveryParser, namesOf } from '../webhooks/parse.js'
import type { Delivery, PayloadSchemas } from '../webhooks/schemas.js'
import type { DeliverySpoolOptions, SpoolReports, StuckDelivery } from './spool-options.js'
import type { Entry, SpoolStore } from './spool-store.js'

/** 1 s, 2 s, 4 s and so on to 1 min. */
export const backoff: Backoff = { firstMs: 1_000, maxMs: 60_000 }

/** Failures are reported to `onStuck` from this one on, once in an interval. */
const firstReportedFailure = 10
const reportIntervalMs = 3_600_000

interface DelivererParts<Payloads extends PayloadSchemas> {
  readonly parser: Pick<DeliveryParser<Payloads>, 'safeParse'>
  readonly reports: SpoolReports
  /** Aborted when `close` waits no longer. */
  readonly ending: AbortController
}

const channel = channelFor('deliver')

export class Deliverer<Payloads extends PayloadSchemas> {
  readonly #store: SpoolStore
  readonly #options: Pick<DeliverySpoolOptions<Payloads>, 'deliver' | 'onStuck'> & {
    readonly concurrency: number
    readonly deliverTimeoutMs: number
  }
  readonly #parts: DelivererParts<Payloads>
  /** The attempts in flight: at most `concurrency`. Each stays until the outcome of its entry is on the disk. */
  readonly #running = new Set<Promise<void>>()
  #repetitions = 0
  readonly #startedAt: number
  /** Runs everything in the async context of `open`, not in that of an arriving delivery. */
  readonly #inContext = AsyncLocalStorage.snapshot()
  #timer: NodeJS.Timeout | undefined
  #starting: Promise<void> | undefined
  #hasWork = false
  #isStopped = false

  constructor(store: SpoolStore, options: DeliverySpoolOptions<Payloads>, parts: DelivererParts<Payloads>) {
    this.#store = store
    // Not a spread, which would leave out the methods of a class.
    const { deliver, onStuck, concurrency = 16, deliverTimeoutMs = 60_000 } = options
    this.#options = { deliver, onStuck, concurrency, deliverTimeoutMs }
    this.#parts = parts
    // The deliverer's clock only goes forward, also across processes. If the time of day was set back, no entry waits
    // longer than the longest backoff.
    const latest = Math.max(Date.now(), store.lastDueAt - backoff.maxMs)
    this.#startedAt = latest - performance.now()
  }

  #now(): number {
    return Math.floor(this.#startedAt + performance.now())
  }

  /** Call it after keeping a delivery: looks for work soon, once per turn of the event loop. */
  wakeUp(): void {
    this.#hasWork = true
    this.#starting ??= this.#inContext(() => this.#startAll())
  }

  async #startAll(): Promise<void> {
    while (this.#hasWork && !this.#isStopped) {
      await setImmediate()
      this.#hasWork = false
      while (this.#running.size < this.#options.concurrency) {
        const entry = await this.#next()
        // An entry that was taken when the spool stopped stays on the disk.
        if (entry === undefined || this.#isStopped) break
        this.#run(entry)
      }
    }
    this.#starting = undefined
  }

  /** The next due entry; without one, sets the timer for the next due time. */
  async #next(): Promise<Entry | undefined> {
    const now = this.#now()
    // At most half: deliveries that keep failing, or never end, must not delay others.
    if (this.#repetitions < Math.max(1, Math.floor(this.#options.concurrency / 2))) {
      const entry = await this.#store.take('tried', now)
      if (entry !== undefined) return entry
      const { nextDueAt } = this.#store
      clearTimeout(this.#timer)
      if (nextDueAt !== undefined && !this.#isStopped) {
        this.#timer = setTimeout(() => this.wakeUp(), nextDueAt - now)
      }
    }
    return this.#store.take('fresh', now)
  }

  #run(entry: Entry): void {
    const isRepetition = entry.attempts > 0
    if (isRepetition) this.#repetitions += 1
    const attempt = this.#attempt(entry).finally(() => {
      if (isRepetition) this.#repetitions -= 1
      this.#running.delete(attempt)
      this.wakeUp()
    })
    this.#running.add(attempt)
  }

  /** Delivers an entry once. Never rejects: the entry stays on the disk until its work is done. */
  async #attempt(entry: Entry): Promise<void> {
    const { parser, reports, ending } = this.#parts
    const { data, error } = parser.safeParse(entry.text)
    if (error) return this.#rejectUnreadable(entry, error)
    const attempt = entry.attempts + 1
    const startedAt = performance.now()
    try {
      await traced(
        channel,
        () => ({ ...namesOf(data), attempt }),
        () => this.#limited((signal) => this.#options.deliver(data, { signal })),
      )
    } catch (reason) {
      // `close` ended the attempt: its outcome is unknown, so it does not count.
      if (ending.signal.aborted) return
      return this.#fail(entry, data, reason)
    }
    const durationMs = Math.round(performance.now() - startedAt)
    const fields = { ...namesOf(data), attempt, durationMs, receivedAt: entry.receivedAt }
    reports.plain('debug', { event: 'spool.delivered', ...fields }, 'Delivered')
    await this.#store.remove(entry)
  }

  async #rejectUnreadable(entry: Entry, { issues }: InvalidDeliveryError): Promise<void> {
    if (!(await this.#store.makeDeadLetter(entry, 'unreadable', { issues }))) return this.#postpone(entry)
    this.#parts.reports.loss(
      'error',
      { event: 'spool.unreadable', letterId: entry.id, receivedAt: entry.receivedAt, issues },
      'A kept delivery cannot be read any more, and is now a dead letter',
    )
  }

  async #fail(entry: Entry, delivery: Delivery<Payloads>, error: unknown): Promise<void> {
    const { plain, sparse } = this.#parts.reports
    const { receivedAt } = entry
    const attempts = entry.attempts + 1
    const fields = { ...namesOf(delivery), attempts, receivedAt, err: error }
    sparse('warn', { event: 'spool.failed', ...fields }, 'Delivering failed, will be repeated')
    const now = this.#now()
    // An entry that was never reported counts as reported long ago.
    const isReportDue = attempts >= firstReportedFailure && now - entry.reportedAt >= reportIntervalMs
    if (!isReportDue) return this.#postpone(entry)
    const answer = await this.#report({ delivery, attempts, sinceAt: receivedAt, error }, fields)
    if (answer === 'discard') {
      plain('warn', { event: 'spool.discarded', ...fields }, 'A delivery is given up, as onStuck says')
      return this.#store.remove(entry)
    }
    const isLetter =
      answer === 'dead-letter' &&
      (await this.#store.makeDeadLetter(entry, 'stuck', { error: shownOf(error) }))
    if (!isLetter) return this.#postpone(entry, now)
    const letter = { ...fields, letterId: entry.id }
    plain('warn', { event: 'spool.dead-lettered', ...letter }, 'A delivery is now a dead letter')
  }

  /** Calls `onStuck`, and resolves with its result. */
  async #report(stuck: StuckDelivery<Payloads>, fields: object): Promise<unknown> {
    const { onStuck } = this.#options
    const { plain, loss } = this.#parts.reports
    const log = onStuck ? plain : loss
    log('error', { event: 'spool.stuck', ...fields }, 'A delivery is stuck')
    try {
      return await this.#limited(() => onStuck?.(stuck))
    } catch (err) {
      loss('error', { event: 'spool.callback-failed', callback: 'onStuck', err }, 'onStuck failed')
      return undefined
    }
  }

  /** Delays a failed entry by the backoff. */
  async #postpone(entry: Entry, reportedAt = entry.reportedAt): Promise<void> {
    const attempts = entry.attempts + 1
    const dueAt = this.#now() + backoffMs(attempts, backoff)
    await this.#store.postpone(entry, { dueAt, attempts, reportedAt })
  }

  /**
   * Calls a function with a signal, and settles as the function does, also if that ignores its signal.
   *
   * @throws after `deliverTimeoutMs` a `DOMException` named `TimeoutError`, when the spool closes one named `AbortError`
   */
  async #limited<T>(call: (signal: AbortSignal) => T): Promise<Awaited<T>> {
    const { ending } = this.#parts
    const { deliverTimeoutMs } = this.#options
    const controller = new AbortController()
    const { signal } = controller
    const timer = setTimeout(() => {
      const message = `The call took longer than ${deliverTimeoutMs} ms.`
      controller.abort(new DOMException(message, 'TimeoutError'))
    }, deliverTimeoutMs)
    const end = () => controller.abort(ending.signal.reason)
    ending.signal.addEventListener('abort', end)
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    try {
      return await Promise.race([call(signal), aborted])
    } finally {
      clearTimeout(timer)
      ending.signal.removeEventListener('abort', end)
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
    const timer = setTimeout(() => this.#parts.ending.abort(reason), timeoutMs)
    await this.#starting
    await Promise.all(this.#running)
    clearTimeout(timer)
  }
}

/** The part of a thrown value that a dead letter keeps. The value may be anything, even an object whose getters throw. */
function shownOf(thrown: unknown): { name: string; message: string } {
  let name: string = typeof thrown
  try {
    if (thrown instanceof Error) name = excerpt(String(thrown.name), 100)
  } catch {
    // Then the name is its type.
  }
  return { name, message: messageOf(thrown) }
}
