/** Keeps deliveries on disk until their work is done: see {@link DeliverySpool}. */
import * as fs from 'node:fs/promises'
import { resolve } from 'node:path'
import { ClosedError, type InvalidDeliveryError, SpoolError } from '../errors.js'
import { InFlight } from '../shared/in-flight.js'
import { jsonOf } from '../webhooks/body.js'
import { createDeliveryParser } from '../webhooks/parse.js'
import type { NoPayloadSchemas, PayloadSchemas } from '../webhooks/schemas.js'
import type { DeadLetter } from './dead-letters.js'
import { Deliverer } from './deliverer.js'
import { prepareFolder, type SpoolFiles, SpoolFolder } from './folder.js'
import { lockFolder } from './lock.js'
import {
  type DeliverySpoolOptions,
  refuse,
  reportsOf,
  validateCloseOptions,
  validateSpoolOptions,
} from './spool-options.js'
import { SpoolStore } from './spool-store.js'

/** What an open spool needs. */
type Parts<Payloads extends PayloadSchemas> = Awaited<ReturnType<typeof openParts<Payloads>>>

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
  readonly #parts: Parts<Payloads>
  readonly #writes = new InFlight()
  #closing: Promise<number> | undefined
  #isLost = false

  private constructor(parts: Parts<Payloads>) {
    // In JavaScript the constructor is not private.
    if (!(parts?.store instanceof SpoolStore)) {
      const message = 'use `await DeliverySpool.open(options)` instead of `new DeliverySpool`'
      throw refuse([{ path: [], message }])
    }
    this.#parts = parts
    void parts.lock.lost.then(() => this.#stopWithoutLock())
  }

  /**
   * Opens the spool, and begins to deliver what an earlier process left. An open spool keeps the process running until
   * {@link DeliverySpool.close}.
   *
   * @throws `ConfigurationError` if the options cannot work, or the folder is open in another process, belongs to or
   * can be read by other users, or cannot be written or read
   */
  static async open<Payloads extends PayloadSchemas = NoPayloadSchemas>(
    options: DeliverySpoolOptions<Payloads>,
  ): Promise<DeliverySpool<Payloads>> {
    return new this(await openParts(options, fs))
  }

  /**
   * The number of waiting deliveries, those in flight included. After `close`: the number of unfinished deliveries.
   */
  get size(): number {
    return this.#parts.store.count
  }

  /**
   * When the oldest waiting delivery was received, in milliseconds since 1970; `undefined` if none waits.
   */
  get oldestReceivedAt(): number | undefined {
    return this.#parts.store.oldestReceivedAt
  }

  /**
   * Keeps a delivery; resolves when the delivery is on the disk. A handler for every notification, bound to its spool:
   * `receiver.onAny(spool.keep)`.
   *
   * @throws `SpoolError` if the delivery could not be kept, `InvalidDeliveryError` if it cannot be written as JSON,
   * `ClosedError` after `close`: the receiver hands them to its `onError`
   */
  readonly keep = async (
    _notification: unknown,
    context: { readonly delivery: object; readonly header?: (name: string) => string | undefined },
  ): Promise<void> => {
    const { delivery, header }: Partial<typeof context> = Object(context)
    const [traceparent] = traceparentPattern.exec(header?.('traceparent') ?? '') ?? []
    await this.#beforeClose(() => this.#parts.store.add(jsonOf(delivery), traceparent))
    this.#parts.deliverer.wakeUp()
  }

  /**
   * Keeps a body that is no delivery as a dead letter (docs/spool.md, Dead letters); resolves when the body is on the
   * disk. For the receiver's `onInvalid`, bound to its spool.
   *
   * @throws `SpoolError` if the body could not be kept, or the oldest could not be dropped, `InvalidDeliveryError` if the
   * body cannot be written as JSON, `ClosedError` after `close`
   */
  readonly keepInvalid = async (error: InvalidDeliveryError): Promise<void> => {
    const { body, bodyText, issues } = error
    await this.#beforeClose(() => this.#parts.store.addInvalid(body, Buffer.byteLength(bodyText), issues))
  }

  /**
   * The dead letters, the oldest first: invalid bodies, kept deliveries that can no longer be read, and deliveries for which
   * `onStuck` returned `'dead-letter'`. A damaged letter is reported and left out.
   *
   * @throws `SpoolError` if the disk fails, `ClosedError` after `close`
   *
   * @example
   * ```ts
   * for await (const { id, receivedAt, reason, issues, error } of spool.deadLetters()) {
   *   console.log(id, new Date(receivedAt), reason, issues ?? error)
   *   await spool.retry(id)
   * }
   * ```
   */
  async *deadLetters(): AsyncGenerator<DeadLetter, void, undefined> {
    const { letters } = this.#parts.store
    this.#requireOpen()
    for (const id of letters.ids) {
      const letter = await this.#beforeClose(() => letters.read(id))
      if (letter !== undefined) yield letter
    }
  }

  /**
   * Reads a dead letter again, and returns it to the waiting deliveries as never tried.
   *
   * @returns false if there is no dead letter with this id
   * @throws `InvalidDeliveryError` if the body still is no delivery, `SpoolError` if the disk fails, `ClosedError` after
   * `close`: the dead letter stays, also if only its removal failed, and its delivery waits
   */
  retry(id: number): Promise<boolean> {
    const { store, parser, deliverer } = this.#parts
    return this.#beforeClose(() => store.retry(id, parser.parse)).finally(() => deliverer.wakeUp())
  }

  /**
   * Removes a dead letter.
   *
   * @returns false if there is no dead letter with this id
   * @throws `SpoolError` if the disk fails, `ClosedError` after `close`
   */
  discard(id: number): Promise<boolean> {
    return this.#beforeClose(() => this.#parts.store.letters.remove(id))
  }

  /**
   * Keeps and delivers nothing more, waits for the running calls of `deliver`, and releases the folder. Close the receiver
   * first.
   *
   * @param options - `timeoutMs`: how long to wait, in milliseconds. Then the calls' signals are aborted, and the
   * next process repeats their deliveries. Default: 10,000
   * @returns how many deliveries are left for the next process
   * @throws `ConfigurationError` if `timeoutMs` is invalid: then the spool stays open
   */
  async close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<number> {
    validateCloseOptions(options)
    this.#closing ??= this.#close(options.timeoutMs ?? 10_000)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<number> {
    const { store, deliverer, lock, reports } = this.#parts
    try {
      await deliverer.stop(timeoutMs)
      await this.#writes.whenIdle()
      await store.close()
    } finally {
      await lock.release()
    }
    reports.toLogger('info', { event: 'spool.closed', size: this.size }, 'The spool is closed')
    return this.size
  }

  /** Same as {@link DeliverySpool.close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Runs a write that `close` waits for. */
  async #beforeClose<T>(write: () => Promise<T>): Promise<T> {
    this.#requireOpen()
    this.#writes.begin()
    try {
      return await write()
    } finally {
      this.#writes.end()
    }
  }

  #requireOpen(): void {
    if (this.#closing) throw new ClosedError('The spool is closed: close it after the receiver is drained.')
    if (!this.#isLost) return
    const message = `The spool has stopped: its lock is gone from ${this.#parts.path}. ${lostAdvice}`
    throw new SpoolError(message, { reason: 'lock' })
  }

  /** Another process may use the folder now, and deliver its content. */
  #stopWithoutLock(): void {
    const { path, deliverer, reports } = this.#parts
    this.#isLost = true
    deliverer.pause()
    reports.always(
      'error',
      { event: 'spool.lock-lost', path },
      `The lock of the spool is gone. ${lostAdvice}`,
    )
  }
}

const lostAdvice = 'Let no other program remove files from the folder, and restart this process.'

/** As the W3C defines it (Trace Context, 3.2); anything else is not kept. */
const traceparentPattern = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** {@link DeliverySpool.open}, with files that tests can replace. */
export async function openParts<Payloads extends PayloadSchemas>(
  options: DeliverySpoolOptions<Payloads>,
  files: SpoolFiles,
) {
  validateSpoolOptions(options)
  // Without the user's schemas the type has none either, which the cast states.
  const parser = createDeliveryParser({ payloads: options.payloads ?? ({} as Payloads) })
  const folder = await openFolder(options, files)
  const { store, lock, reports, path } = folder
  const fields = { path, size: store.count, deadLetters: store.letters.ids.length }
  reports.toLogger('info', { event: 'spool.opened', ...fields }, 'The spool is open')
  const deliverer = new Deliverer(store, parser, reports, options, folder.concurrency, lock.inFlightBefore)
  // Does not call `deliver` yet: it may use variables that its module declares after the call of `open`.
  deliverer.wakeUp()
  return { ...folder, deliverer, parser }
}

type FolderOptions = Pick<DeliverySpoolOptions, 'path' | 'maxBytes' | 'concurrency' | 'logger'>

/** Opens the folder of a spool for this process alone, and delivers nothing. */
export async function openFolder(options: FolderOptions, files: SpoolFiles = fs) {
  // The same folder even if the process changes its working directory.
  const path = resolve(options.path)
  const { maxBytes = 2 ** 30, concurrency = 16 } = options
  const reports = reportsOf(path, options.logger)
  await prepareFolder(path, files)
  const lock = await lockFolder(path, concurrency, reports)
  const store = new SpoolStore(new SpoolFolder(path, files, reports), maxBytes)
  await store.open().catch(async (cause) => {
    await lock.release()
    throw cause
  })
  return { path, reports, concurrency, lock, store }
}
