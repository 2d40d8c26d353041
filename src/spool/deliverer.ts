/** Takes deliveries from the disk, a few at a time, and calls `deliver` until it has done its work. */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InvalidDeliveryError } from '../errors.js'
import type { Log } from '../logger.js'
import type { Delivery, PayloadSchemas } from '../webhooks/delivery/delivery.js'
import type { DeliveryParser, DeliveryResult } from '../webhooks/delivery/delivery-parser.js'
import { Failure } from '../webhooks/delivery/failure.js'
import { invalidDelivery } from '../webhooks/delivery/invalid-delivery.js'
import { backoffMs, isReportDue, maxBackoffMs } from './backoff.js'
import type { DeliverySpoolOptions, StuckDelivery } from './spool-options.js'
import type { Entry, SpoolStore } from './spool-store.js'
import { withTimeLimit } from './time-limit.js'

/** How long to wait after the disk failed, in milliseconds. */
const diskRetryMs = 1_000

export interface DelivererOptions<Payloads extends PayloadSchemas> {
  readonly deliver: DeliverySpoolOptions<Payloads>['deliver']
  readonly concurrency: number
  readonly deliverTimeoutMs: number
  readonly parser: Pick<DeliveryParser<Payloads>, 'safeParse'>
  readonly onStuck: (stuck: StuckDelivery<Payloads>) => unknown
  /** Gets a line for each failed attempt, and may leave some out. */
  readonly log: Log
  /** Gets a line for what somebody should look at. */
  readonly lossLog: Log
}

export class Deliverer<Payloads extends PayloadSchemas> {
  readonly #store: SpoolStore
  readonly #options: DelivererOptions<Payloads>
  /** The entries in flight, by id: at most `concurrency`. Each stays until what became of it is on the disk. */
  readonly #running = new Map<number, Promise<void>>()
  #repetitions = 0
  /** Half of `concurrency`: deliveries that fail again and again, even by never ending, must not hold up others. */
  readonly #maxRepetitions: number
  readonly #startedAt: number
  #timer: NodeJS.Timeout | undefined
  #isAwake = false
  #isStopped = false
  readonly #ending = new AbortController()

  constructor(store: SpoolStore, options: DelivererOptions<Payloads>) {
    this.#store = store
    this.#options = options
    this.#maxRepetitions = Math.max(1, Math.floor(options.concurrency / 2))
    // The deliverer's clock only goes forward, also from one process to the next. If the time of day was set back
    // meanwhile, no entry waits longer than the longest backoff.
    const latest = Math.max(Date.now(), store.lastDueAt - maxBackoffMs)
    this.#startedAt = latest - performance.now()
    // One listener for each delivery in flight: Node.js takes so many for a leak.
    setMaxListeners(0, this.#ending.signal)
  }

  #now(): number {
    return Math.floor(this.#startedAt + performance.now())
  }

  /** To be called when something was kept: looks for work soon, once for all that is kept in this turn. */
  wakeUp(): void {
    if (this.#isAwake) return
    this.#isAwake = true
    setImmediate(() => {
      this.#isAwake = false
      this.#startAll()
    })
  }

  #startAll(): void {
    clearTimeout(this.#timer)
    if (this.#isStopped) return
    try {
      while (this.#running.size < this.#options.concurrency) {
        const entry = this.#next()
        if (entry === undefined) break
        this.#run(entry)
      }
    } catch (err) {
      this.#options.lossLog('error', { err }, 'Reading the spool failed')
      this.#wakeUpIn(diskRetryMs)
    }
  }

  /** An entry that is due; if there is none, sets the timer for the next one. */
  #next(): Entry | undefined {
    if (this.#repetitions < this.#maxRepetitions) {
      const dueAt = this.#store.nextDueAt(this.#running)
      if (dueAt !== undefined) {
        const waitMs = dueAt - this.#now()
        if (waitMs <= 0) return this.#store.firstToRepeat(this.#running)
        this.#wakeUpIn(waitMs)
      }
    }
    return this.#store.firstNew(this.#running)
  }

  #wakeUpIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#startAll(), delayMs)
  }

  #run(entry: Entry): void {
    const isRepetition = entry.dueAt > 0
    if (isRepetition) this.#repetitions += 1
    const over = this.#attempt(entry).finally(() => {
      if (isRepetition) this.#repetitions -= 1
      this.#running.delete(entry.id)
      this.wakeUp()
    })
    this.#running.set(entry.id, over)
  }

  /** Delivers an entry once. Never rejects: whatever happens, the entry is on the disk until its work is done. */
  async #attempt(entry: Entry): Promise<void> {
    const { data, error } = this.#read(entry.text)
    if (error) return this.#setAside(entry, error)
    try {
      await this.#limited((signal) => this.#options.deliver(data, { signal }))
    } catch (reason) {
      // `close` has ended the attempt: nothing is known of its outcome, so it does not count.
      if (this.#ending.signal.aborted) return
      return this.#fail(entry, data, reason)
    }
    await this.#persist(() => this.#store.remove(entry))
  }

  #read(text: string): DeliveryResult<Payloads> {
    try {
      return this.#options.parser.safeParse(text)
    } catch (thrown) {
      // A parser that was not made by `createDeliveryParser` may throw.
      return { success: false, error: invalidDelivery(text, Failure.of(thrown)) }
    }
  }

  async #fail(entry: Entry, delivery: Delivery<Payloads>, error: unknown): Promise<void> {
    const attempts = entry.history.attempts + 1
    this.#options.log(
      'warn',
      { ...namesOf(delivery), attempts, err: error },
      'Delivering failed, will be repeated',
    )
    let history = { ...entry.history, attempts }
    if (isReportDue(attempts, history.reportedAt, this.#now())) {
      history = { ...history, reportedAt: this.#now() }
      const stuck = { delivery, attempts, sinceAt: history.keptAt, error }
      if ((await this.#report(stuck)) === 'discard') return this.#persist(() => this.#store.remove(entry))
    }
    await this.#persist(() => this.#store.postpone(entry, this.#now() + backoffMs(attempts), history))
  }

  async #report(stuck: StuckDelivery<Payloads>): Promise<unknown> {
    try {
      return await this.#limited(() => this.#options.onStuck(stuck))
    } catch (err) {
      this.#options.lossLog('error', { ...namesOf(stuck.delivery), err }, 'onStuck failed')
      return undefined
    }
  }

  async #setAside(entry: Entry, { issues, message }: InvalidDeliveryError): Promise<void> {
    await this.#persist(() => this.#store.setAside(entry, issues))
    this.#options.lossLog(
      'error',
      { id: entry.id, issues },
      `A delivery that was kept cannot be read any more, and is among spool.invalid(): ${message}`,
    )
  }

  #limited<T>(call: (signal: AbortSignal) => T): Promise<Awaited<T>> {
    return withTimeLimit(this.#options.deliverTimeoutMs, this.#ending.signal, call)
  }

  /** Writes what became of an entry. While the disk fails, the entry stays in flight, so it is not delivered again. */
  async #persist(write: () => Promise<void>): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await write()
      } catch (err) {
        if (failures === 0)
          this.#options.lossLog('error', { err }, 'Writing to the spool failed, will be repeated')
      }
      if (this.#ending.signal.aborted) return
      await sleep(diskRetryMs, undefined, { signal: this.#ending.signal }).catch(() => {})
    }
  }

  /** Begins nothing more, and waits for the attempts in flight; after `timeoutMs` they are aborted. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    const timer = setTimeout(
      () => this.#ending.abort(new DOMException('The spool is closed.', 'AbortError')),
      timeoutMs,
    )
    await Promise.all(this.#running.values())
    clearTimeout(timer)
  }
}

function namesOf<Payloads extends PayloadSchemas>({
  subscriptionId,
  notification,
}: Delivery<Payloads>): object {
  const { id, type } = notification
  return { subscriptionId, id, type }
}
