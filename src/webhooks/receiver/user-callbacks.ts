/** Calls what the user gave a receiver, its handlers, `onError`, `onInvalid` and `onRefused`, or tells the log. */
import { type Log, logOf, lossLogOf, sparseLossLogOf } from '../../logger.js'
import { callSafely } from '../../shared/call-safely.js'
import { formatIssues } from '../../shared/issues.js'
import type { PayloadSchemas } from '../delivery/delivery.js'
import type { NotificationHandler } from './handlers.js'
import type { JudgedDelivery, JudgedInvalid } from './judged-body.js'
import type { DeliveryReceiverOptions } from './receiver-options.js'
import type { RefusedCallback } from './refusal.js'

interface RegisteredHandler<Payloads extends PayloadSchemas> {
  /** `undefined` for all types. */
  readonly type: string | undefined
  readonly handler: NotificationHandler<string, Payloads>
}

type Callbacks<Payloads extends PayloadSchemas> = Pick<
  DeliveryReceiverOptions<Payloads>,
  'onError' | 'onInvalid' | 'onRefused' | 'logger'
>

/** The functions of a user's behind one receiver. No method throws or rejects, whatever those functions do. */
export class UserCallbacks<Payloads extends PayloadSchemas> {
  readonly #callbacks: Callbacks<Payloads>
  readonly #log: Log
  readonly #logLoss: Log
  readonly #logRefusal: Log
  #handlers: readonly RegisteredHandler<Payloads>[] = []

  constructor(callbacks: Callbacks<Payloads>) {
    this.#callbacks = callbacks
    this.#log = logOf(callbacks.logger)
    this.#logLoss = lossLogOf(callbacks.logger)
    this.#logRefusal = sparseLossLogOf(callbacks.logger)
  }

  /** Registers a handler for one type, or for all. A delivery that is being handled does not reach this handler. */
  register(type: string | undefined, handler: NotificationHandler<string, Payloads>): void {
    this.#handlers = [...this.#handlers, { type, handler }]
  }

  /** Whether a handler is registered for this very type. */
  hasHandlerFor(type: string): boolean {
    return this.#handlers.some((registered) => registered.type === type)
  }

  /** Calls all handlers of a delivery. Each promise resolves when one is done, and what it threw is reported. */
  notify(delivery: JudgedDelivery<Payloads>): readonly Promise<void>[] {
    const { type, logFields } = delivery
    this.#log('debug', logFields, 'Delivery received')
    // A scan, not a lookup: types come from outside, and one may be called `__proto__`.
    const handlers = this.#handlers.filter((registered) => (registered.type ?? type) === type)
    return handlers.map(({ handler }) => this.#call(handler, delivery))
  }

  async #call(
    handler: NotificationHandler<string, Payloads>,
    delivery: JudgedDelivery<Payloads>,
  ): Promise<void> {
    try {
      await handler(delivery.notification, delivery.context)
    } catch (error) {
      await this.#reportError(error, delivery)
    }
  }

  #reportError(error: unknown, delivery: JudgedDelivery<Payloads>): unknown {
    const { notification, context, logFields } = delivery
    const { onError } = this.#callbacks
    if (onError === undefined) return this.#logLoss('error', { ...logFields, err: error }, 'Handler failed')
    return callSafely(
      () => onError(error, notification, context),
      (err) => this.#logLoss('error', { ...logFields, err }, 'onError failed'),
    )
  }

  /** Resolves when `onInvalid` is done. */
  async reportInvalid({ error, logFields }: JudgedInvalid): Promise<void> {
    const { onInvalid } = this.#callbacks
    if (onInvalid === undefined) {
      const problem = `Not a notification delivery: ${formatIssues(error.issues)}`
      const advice =
        error.body === undefined
          ? 'put the route before every body parser (docs/receiver.md)'
          : 'give the receiver onInvalid to keep the body'
      this.#logLoss('error', logFields, `${problem}. It is lost: ${advice}.`)
      return
    }
    await callSafely(
      () => onInvalid(error),
      (err) => this.#logLoss('error', { ...logFields, err }, 'onInvalid failed'),
    )
  }

  /** Does not wait for `onRefused`: the answer to a stranger must not depend on it. */
  reportRefused(refused: RefusedCallback): void {
    const { onRefused } = this.#callbacks
    if (onRefused === undefined) {
      const advice = refused.status === 401 ? ': "401 on my route" in docs/troubleshooting.md' : ''
      this.#logRefusal('warn', refused, `Callback refused${advice}`)
      return
    }
    void callSafely(
      () => onRefused(refused),
      (err) => this.#logRefusal('error', { ...refused, err }, 'onRefused failed'),
    )
  }
}
