/** What was answered is not lost: see {@link DeliverySpool}. */
import { ClosedError, ConfigurationError, type InvalidDeliveryError } from '../errors.js'
import { type Log, logOf, lossLogOf } from '../logger.js'
import { messageOf } from '../shared/excerpt.js'
import { inFlight } from '../shared/in-flight.js'
import type { NoPayloadSchemas, PayloadSchemas } from '../webhooks/delivery/delivery.js'
import { type DeliveryParser, defaultParser } from '../webhooks/delivery/delivery-parser.js'
import { Deliverer } from './deliverer.js'
import { checkDataFile, finishFolder, prepareFolder, prepareLockFile, refuseDamaged } from './folder.js'
import { lockFolder, type ReleaseFolder } from './folder-lock.js'
import { refusePath } from './refuse-path.js'
import { type DeliverySpoolOptions, type StuckDelivery, validateSpoolOptions } from './spool-options.js'
import { type InvalidBody, SpoolStore, type SpoolStoreLimits } from './spool-store.js'

/** What a spool consists of when it is open. */
interface Parts<Payloads extends PayloadSchemas> {
  readonly store: SpoolStore
  readonly deliverer: Deliverer<Payloads>
  readonly releaseFolder: ReleaseFolder
}

/**
 * Keeps deliveries on disk before their callbacks are answered, and delivers each to a function of yours until that
 * succeeds: at least once, also after the process has died. The service never repeats a callback that was answered
 * (docs/service.md, Rules).
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
    this.#parts = parts
  }

  /**
   * Opens the spool, and begins to deliver what an earlier process left in it. It keeps the process running until
   * {@link DeliverySpool.close}.
   *
   * @throws ConfigurationError if the options cannot work, the package `lmdb` is missing, another process has the
   * folder open, other users can read it, or it cannot be written or read.
   */
  static async open<Payloads extends PayloadSchemas = NoPayloadSchemas>(
    options: DeliverySpoolOptions<Payloads>,
  ): Promise<DeliverySpool<Payloads>> {
    validateSpoolOptions(options)
    const { path, maxBytes = 2 ** 30, deliver, concurrency = 16, deliverTimeoutMs = 60_000 } = options
    const lossLog = lossLogOf(options.logger)
    // Without a parser there are no payload schemas of the user's, and then this is its type.
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
        log: logOf(options.logger),
        lossLog,
      })
      // Calls nothing yet: `deliver` may use what its module declares after the call of open.
      deliverer.wakeUp()
      return new DeliverySpool({ store, deliverer, releaseFolder })
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
   * Keeps a delivery; resolves when it is on the disk. A handler for every notification: `receiver.onAny(spool.keep)`.
   *
   * @throws SpoolError if it could not be kept, ClosedError after `close`: the receiver hands both to its `onError`.
   */
  readonly keep = async (_notification: unknown, context: { readonly delivery: object }): Promise<void> => {
    await this.#beforeClose(() => this.#parts.store.add(JSON.stringify(context.delivery)))
    this.#parts.deliverer.wakeUp()
  }

  /**
   * Keeps a body that is no delivery, to look at later; resolves when it is on the disk. For the receiver's
   * `onInvalid`. Up to 16 MiB are kept: the oldest are dropped first.
   *
   * @throws SpoolError if it could not be kept, ClosedError after `close`.
   */
  readonly keepInvalid = async (error: InvalidDeliveryError): Promise<void> => {
    await this.#beforeClose(() => this.#parts.store.addInvalid(error.body, error.issues))
  }

  /**
   * The bodies that are no deliveries, the oldest first: those of {@link DeliverySpool.keepInvalid}, and deliveries
   * that were kept and that `parser` cannot read any more, which are never dropped for room.
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

  /** Removes one of {@link DeliverySpool.invalid}; does nothing if it is gone already. */
  async discardInvalid(id: number): Promise<void> {
    await this.#beforeClose(() => this.#parts.store.removeInvalid(id))
  }

  /**
   * Keeps and delivers nothing more, waits for the calls of `deliver` that are running, and gives the folder back. Calls
   * that take longer than `timeoutMs` (default: 10,000) are aborted by their signal; the next process delivers
   * theirs again. Drain the receiver first.
   *
   * @returns how many deliveries are left for the next process
   */
  close({ timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {}): Promise<number> {
    this.#closing ??= this.#close(timeoutMs)
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

  /** Calls {@link DeliverySpool.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Writes something, for which `close` waits. */
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

async function openStore(
  lmdb: typeof import('lmdb'),
  path: string,
  limits: SpoolStoreLimits,
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
