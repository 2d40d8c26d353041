/** Keeps deliveries on disk until their work is done: see {@link DeliverySpool}. */
import * as z from 'zod'
import { ClosedError, type InvalidDeliveryError, SpoolError } from '../errors.js'
import { InFlight } from '../shared/in-flight.js'
import { validate } from '../shared/validation.js'
import { jsonOf } from '../webhooks/body.js'
import { delaySchema } from '../webhooks/options.js'
import { createDeliveryParser, type DeliveryParser } from '../webhooks/parse.js'
import type { NoPayloadSchemas, PayloadSchemas } from '../webhooks/schemas.js'
import type { DeadLetter } from './dead-letters.js'
import { Deliverer } from './deliverer.js'
import { type DeliverySpoolOptions, invalidSpool, validateSpoolOptions } from './spool-options.js'
import { openStore, SpoolStore } from './spool-store.js'

/**
 * Keeps deliveries on disk before their callbacks are answered, and calls your function with each until it succeeds: at
 * least once, also after the process died (docs/spool.md). The service never repeats a callback
 * (docs/service.md, Delivery).
 *
 * @example
 * ```ts
 * const spool = await DeliverySpool.open({ path: './spool', deliver: ({ notification }) => work(notification) })
 * const receiver = new DeliveryReceiver({ secrets: { token }, onInvalid: spool.keepInvalid }).onAny(spool.keep)
 * ```
 */
export class DeliverySpool<Payloads extends PayloadSchemas = NoPayloadSchemas> implements AsyncDisposable {
  readonly #store: SpoolStore
  readonly #parser: DeliveryParser<Payloads>
  readonly #deliverer: Deliverer<Payloads>
  readonly #writes = new InFlight()
  #closing: Promise<number> | undefined
  #isLost = false

  private constructor(
    store: SpoolStore,
    parser: DeliveryParser<Payloads>,
    options: DeliverySpoolOptions<Payloads>,
  ) {
    // In JavaScript the constructor is not private.
    if (!(store instanceof SpoolStore)) {
      const message = 'use `await DeliverySpool.open(options)` instead of `new DeliverySpool`'
      throw invalidSpool([{ path: [], message }])
    }
    this.#store = store
    this.#parser = parser
    this.#deliverer = new Deliverer(store, parser, options)
    void store.lock.lost.then(() => this.#stopWithoutLock())
    const { path, reports } = store.folder
    const fields = { path, size: store.count, deadLetters: store.letters.ids.length }
    reports.toLogger('info', { event: 'spool.opened', ...fields }, 'The spool is open')
    // Does not call `deliver` yet: it may use variables that its module declares after the call of `open`.
    this.#deliverer.wakeUp()
  }

  /**
   * Opens the spool, and begins to deliver what an earlier process left. Keeps the process running until `close`.
   *
   * @throws `ConfigurationError` if the options cannot work, or the folder is open already or cannot be used
   */
  static async open<Payloads extends PayloadSchemas = NoPayloadSchemas>(
    options: DeliverySpoolOptions<Payloads>,
  ): Promise<DeliverySpool<Payloads>> {
    validateSpoolOptions(options)
    // Without the user's schemas the type has none either, which the cast states.
    const parser = createDeliveryParser({ payloads: options.payloads ?? ({} as Payloads) })
    return new this(await openStore(options), parser, options)
  }

  /** The number of waiting deliveries, those in flight included. After `close`: the number of unfinished deliveries. */
  get size(): number {
    return this.#store.count
  }

  /** When the oldest waiting delivery was received, in milliseconds since 1970; `undefined` if none waits. */
  get oldestReceivedAt(): number | undefined {
    return this.#store.oldestReceivedAt
  }

  /**
   * Keeps a delivery; resolves when the delivery is on the disk. A handler, bound to its spool: `receiver.onAny(spool.keep)`.
   *
   * @throws to the receiver's `onError`: `SpoolError` if the delivery could not be kept, `InvalidDeliveryError` if it
   * cannot be written as JSON, `ClosedError` after `close`
   */
  readonly keep = async (
    _notification: unknown,
    context: { readonly delivery: object; readonly header?: (name: string) => string | undefined },
  ): Promise<void> => {
    const { delivery, header }: Partial<typeof context> = Object(context)
    const [traceparent] = traceparentPattern.exec(header?.('traceparent') ?? '') ?? []
    await this.#beforeClose(() => this.#store.add(jsonOf(delivery), traceparent))
    this.#deliverer.wakeUp()
  }

  /**
   * Keeps a body that is no delivery as a dead letter; resolves when the body is on the disk. For the receiver's
   * `onInvalid`, bound to its spool.
   *
   * @throws as {@link DeliverySpool.keep}
   */
  readonly keepInvalid = async (error: InvalidDeliveryError): Promise<void> => {
    await this.#beforeClose(() => this.#store.addInvalid(error.body, error.issues))
  }

  /**
   * The dead letters, the oldest first (docs/spool.md, Dead letters). A damaged letter is reported and left out.
   *
   * @throws `SpoolError` if the disk fails, `ClosedError` after `close`
   *
   * @example
   * ```ts
   * for await (const { id, receivedAt, reason, issues, error } of spool.deadLetters()) {
   *   console.log(id, new Date(receivedAt), reason, issues ?? error)
   * }
   * ```
   */
  async *deadLetters(): AsyncGenerator<DeadLetter, void, undefined> {
    this.#requireOpen()
    for (const id of this.#store.letters.ids) {
      const letter = await this.#beforeClose(() => this.#store.letters.read(id))
      if (letter !== undefined) yield letter
    }
  }

  /**
   * Reads a dead letter again, and returns it to the waiting deliveries as never tried.
   *
   * @returns false if there is no dead letter with this id
   * @throws `InvalidDeliveryError` if the body still is no delivery, `SpoolError` if the disk fails (then the dead letter
   * stays, and its delivery may wait already), `ClosedError` after `close`
   */
  retry(id: number): Promise<boolean> {
    const retried = this.#beforeClose(() => this.#store.retry(id, this.#parser.parse))
    return retried.finally(() => this.#deliverer.wakeUp())
  }

  /**
   * Removes a dead letter.
   *
   * @returns false if there is no dead letter with this id
   * @throws `SpoolError` if the disk fails, `ClosedError` after `close`
   */
  discard(id: number): Promise<boolean> {
    return this.#beforeClose(() => this.#store.letters.remove(id))
  }

  /**
   * Waits for the running calls of `deliver`, and releases the folder. Close the receiver first.
   *
   * @param options - `timeoutMs`: how long to wait, in milliseconds. Then the calls' signals are aborted, and the
   * next process repeats their deliveries. Default: 10,000
   * @returns how many deliveries are left for the next process
   * @throws `ConfigurationError` if `timeoutMs` is invalid: then the spool stays open
   */
  async close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<number> {
    validate(z.strictObject({ timeoutMs: delaySchema().optional() }), options, invalidSpool)
    this.#closing ??= this.#close(options.timeoutMs ?? 10_000)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<number> {
    await this.#deliverer.stop(timeoutMs)
    await this.#writes.whenIdle()
    await this.#store.close()
    const fields = { event: 'spool.closed', size: this.size }
    this.#store.folder.reports.toLogger('info', fields, 'The spool is closed')
    return this.size
  }

  /** Same as {@link DeliverySpool.close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Runs what `close` waits for. */
  async #beforeClose<T>(write: () => Promise<T>): Promise<T> {
    this.#requireOpen()
    const written = write()
    this.#writes.begin()
    return written.finally(() => this.#writes.end())
  }

  #requireOpen(): void {
    if (this.#closing) throw new ClosedError('The spool is closed: close it after the receiver is drained.')
    if (!this.#isLost) return
    const message = `The spool has stopped: its lock is gone from ${this.#store.folder.path}. ${lostAdvice}`
    throw new SpoolError(message, { reason: 'lock' })
  }

  /** Another process may use the folder now, and deliver what waits in it. */
  #stopWithoutLock(): void {
    const { path, reports } = this.#store.folder
    this.#isLost = true
    this.#deliverer.pause()
    const fields = { event: 'spool.lock-lost', path }
    reports.always('error', fields, `The lock of the spool is gone. ${lostAdvice}`)
  }
}

const lostAdvice = 'Let no other program remove files from the folder, and restart this process.'

/** As the W3C defines it (Trace Context, 3.2); anything else is not kept. */
const traceparentPattern = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
