/** Keeps deliveries on disk until their work is done: see {@link DeliverySpool}. */
import { ClosedError, ConfigurationError, type InvalidDeliveryError } from '../errors.js'
import { type Log, lossLogOf, sparseLossLogOf } from '../logger.js'
import { messageOf } from '../shared/excerpt.js'
import { inFlight } from '../shared/in-flight.js'
import type { NoPayloadSchemas, PayloadSchemas } from '../webhooks/delivery/delivery.js'
import { type DeliveryParser, defaultParser } from '../webhooks/delivery/delivery-parser.js'
import { Deliverer } from './deliverer.js'
import type { SpoolLimits } from './disk-room.js'
import { checkDataFile, finishFolder, prepareFolder, prepareLockFile, refuseDamaged } from './folder.js'
import { lockFolder, type ReleaseFolder } from './folder-lock.js'
import { refusePath } from './refuse-path.js'
import {
  type DeliverySpoolOptions,
  type StuckDelivery,
  validateCloseOptions,
  validateSpoolOptions,
} from './spool-options.js'
import { type InvalidBody, SpoolStore } from './spool-store.js'

/** What a spool consists of when it is open. */
interface Parts<Payloads extends PayloadSchemas> {
  readonly store: SpoolStore
  readonly deliverer: Deliverer<Payloads>
  readonly releaseFolder: ReleaseFolder
}

/**
 * Keeps deliveries on disk before their callbacks are answered, and delivers each to a function of yours until that
 * succeeds: at least once, also after the process has died (docs/spool.md). The service never repeats a callback
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
  readonly #writes = inFlight()
  #closing: Promise<number> | undefined
  #finalSize: number | undefined

  private constructor(parts: Parts<Payloads>) {
    // JavaScript does not know that the constructor is private.
    if (!(parts?.store instanceof SpoolStore)) {
      const message = 'use `await DeliverySpool.open(options)` instead of `new DeliverySpool`'
      throw new ConfigurationError(`The delivery spool cannot work: ${message}.`, {
        issues: [{ path: [], message }],
      })
    }
    this.#parts = parts
  }

  /**
   * Opens the spool, and begins to deliver what an earlier process left in it. An open spool keeps the process running
   * until {@link DeliverySpool.close}.
   *
   * @throws `ConfigurationError` if the options cannot work, the package `lmdb` is missing, or the folder is open in
   * another process, can be read by other users, or cannot be written or read
   */
  static async open<Payloads extends PayloadSchemas = NoPayloadSchemas>(
    options: DeliverySpoolOptions<Payloads>,
  ): Promise<DeliverySpool<Payloads>> {
    validateSpoolOptions(options)
    const { path, maxBytes = 2 ** 30, deliver, concurrency = 16, deliverTimeoutMs = 60_000 } = options
    const lossLog = lossLogOf(options.logger)
    // Without a parser of the user's there are no payload schemas, and then `defaultParser` has this type.
    const {
      parser = defaultParser as Pick<DeliveryParser, 'safeParse'> as Pick<
        DeliveryParser<Payloads>,
        'safeParse'
      >,
    } = options
    const lmdb = await loadLmdb()
    await prepareFolder(path)
    const releaseFolder = await lockFolder(path)
    if (releaseFolder === undefined) {
      refusePath(
        path,
        'is open already, in this process or in another one: give each spool a folder of its own, or close the other one',
      )
    }
    try {
      const store = await openStore(lmdb, path, { maxBytes, concurrency })
      const deliverer = new Deliverer(store, {
        deliver,
        concurrency,
        deliverTimeoutMs,
        parser,
        onStuck: options.onStuck ?? ((stuck) => logStuck(stuck, lossLog)),
        log: sparseLossLogOf(options.logger),
        lossLog,
      })
      // Does not call `deliver` yet, which may use what its module declares after the call of `open`.
      deliverer.wakeUp()
      return spoolOf({ store, deliverer, releaseFolder })
    } catch (error) {
      await releaseFolder()
      throw error
    }
  }

  /** How many deliveries wait, those that are being delivered included. After `close`: how many were left. */
  get size(): number {
    return this.#finalSize ?? this.#parts.store.count
  }

  /**
   * Keeps a delivery; resolves when the delivery is on the disk. A handler for every notification, bound to its spool:
   * `receiver.onAny(spool.keep)`.
   *
   * @throws `SpoolError` if the delivery could not be kept, `ClosedError` after `close`: the receiver hands both to its
   * `onError`
   */
  readonly keep = async (_notification: unknown, context: { readonly delivery: object }): Promise<void> => {
    await this.#beforeClose(() => this.#parts.store.add(JSON.stringify(context.delivery)))
    this.#parts.deliverer.wakeUp()
  }

  /**
   * Keeps a body that is no delivery, to look at later; resolves when the body is on the disk. For the receiver's
   * `onInvalid`, bound to its spool. Up to 16 MiB of bodies are kept: the oldest are dropped first.
   *
   * @throws `SpoolError` if the body could not be kept, `ClosedError` after `close`
   */
  readonly keepInvalid = async (error: InvalidDeliveryError): Promise<void> => {
    await this.#beforeClose(() => this.#parts.store.addInvalid(error.body, error.issues))
  }

  /**
   * The bodies that are no deliveries, the oldest first: those of {@link DeliverySpool.keepInvalid}, and deliveries
   * that were kept and that `parser` cannot read any more, which are never dropped for room.
   *
   * @throws `ClosedError` after `close`
   *
   * @example
   * ```ts
   * for await (const { id, body } of spool.invalid()) {
   *   const { data } = parser.safeParse(body)
   *   if (data) await spool.keep(data.notification, { delivery: data })
   *   await spool.discardInvalid(id)
   * }
   * ```
   */
  async *invalid(): AsyncGenerator<InvalidBody, void, undefined> {
    for (let id = 0; ; ) {
      this.#requireOpen()
      const found = this.#parts.store.invalidAfter(id)
      if (found === undefined) return
      yield found
      id = found.id
    }
  }

  /**
   * Removes one of the bodies of {@link DeliverySpool.invalid}; does nothing if that is gone already.
   *
   * @throws `SpoolError` if the disk fails, `ClosedError` after `close`
   */
  async discardInvalid(id: number): Promise<void> {
    await this.#beforeClose(() => this.#parts.store.removeInvalid(id))
  }

  /**
   * Keeps and delivers nothing more, waits for the calls of `deliver` that are running, and gives the folder back.
   * Drain the receiver first.
   *
   * @param options - `timeoutMs`: how long to wait, in milliseconds. Then the signals of the calls are aborted, and the
   * next process delivers theirs again. Default: 10,000
   * @returns how many deliveries are left for the next process
   * @throws `ConfigurationError` if `timeoutMs` is no time that can be waited for: then the spool stays open
   */
  close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<number> {
    try {
      validateCloseOptions(options)
    } catch (error) {
      return Promise.reject(error)
    }
    this.#closing ??= this.#close(options.timeoutMs ?? 10_000)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<number> {
    const { store, deliverer, releaseFolder } = this.#parts
    await deliverer.stop(timeoutMs)
    await new Promise<void>((resolve) => this.#writes.whenOver(resolve))
    this.#finalSize = store.count
    await store.close()
    await releaseFolder()
    return this.#finalSize
  }

  /** Same as {@link DeliverySpool.close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Runs a write that `close` waits for. */
  async #beforeClose(write: () => Promise<void>): Promise<void> {
    this.#requireOpen()
    this.#writes.begin()
    try {
      await write()
    } finally {
      this.#writes.end()
    }
  }

  #requireOpen(): void {
    if (this.#closing) throw new ClosedError('The spool is closed: close it after the receiver is drained.')
  }
}

async function loadLmdb(): Promise<typeof import('lmdb')> {
  try {
    return await import('lmdb')
  } catch (cause) {
    const message = `the package lmdb cannot be loaded (${messageOf(cause)}): run "npm install lmdb"`
    throw new ConfigurationError(
      `The delivery spool cannot work: ${message}.`,
      { issues: [{ path: [], message }] },
      { cause },
    )
  }
}

/** Not in the class: a build would rename a class that names itself, and its name is what logs show. */
function spoolOf<Payloads extends PayloadSchemas>(parts: Parts<Payloads>): DeliverySpool<Payloads> {
  return Reflect.construct(DeliverySpool, [parts])
}

async function openStore(
  lmdb: typeof import('lmdb'),
  path: string,
  limits: SpoolLimits,
): Promise<SpoolStore> {
  const state = await checkDataFile(path)
  try {
    await prepareLockFile(path)
    const store = await SpoolStore.open(lmdb, path, limits)
    await finishFolder(path)
    return store
  } catch (cause) {
    if (state === 'shortened') refuseDamaged(path, cause)
    refusePath(path, 'cannot be written or read', cause)
  }
}

function logStuck<Payloads extends PayloadSchemas>(
  { delivery, attempts, sinceAt, error }: StuckDelivery<Payloads>,
  lossLog: Log,
): void {
  const { subscriptionId, notification } = delivery
  const { id, type } = notification
  lossLog('error', { subscriptionId, id, type, attempts, sinceAt, err: error }, 'A delivery is stuck')
}
