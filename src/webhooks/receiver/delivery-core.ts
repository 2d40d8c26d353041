/** The way of a callback from its head to its answer, which `handle` and the adapters share. */
import { type Log, logOf } from '../../logger.js'
import { inFlight } from '../../shared/in-flight.js'
import { isBytes } from '../delivery/body.js'
import type { PayloadSchemas } from '../delivery/delivery.js'
import { type Authenticator, authenticator } from './authentication.js'
import { type BodyRead, failedBody } from './body-read.js'
import { type BodyParser, type JudgedBody, judgeBody } from './judged-body.js'
import type { DeliveryReceiverOptions } from './receiver-options.js'
import type { RefusedCallback } from './refusal.js'
import type { RequestHeaders } from './request-headers.js'
import { isOverSoon, isOverWithin, type Progress } from './time-limit.js'
import { UserCallbacks } from './user-callbacks.js'

/** What to answer a callback with. There is never a body. */
export interface CallbackAnswer {
  /** 204 for everything that comes from the service; 401, 405 or 413 for what does not. */
  readonly status: 204 | 401 | 405 | 413
  /** The headers of the answer: `allow` with a 405, otherwise none. */
  readonly headers: Record<string, string>
}

/** What became of a callback. */
export interface Receipt {
  readonly answer: CallbackAnswer
  /** Resolves when the handlers that the answer did not wait for are done. */
  readonly stillRunning?: Promise<void>
}

export class DeliveryCore<Payloads extends PayloadSchemas> {
  readonly maxBodyBytes: number
  readonly log: Log
  readonly callbacks: UserCallbacks<Payloads>
  readonly #parser: BodyParser<Payloads>
  readonly #authenticate: Authenticator
  readonly #ackTimeoutMs: number
  readonly #deliveries = inFlight()

  /** @param options - valid ones: they are not checked here */
  constructor(options: DeliveryReceiverOptions<Payloads>, parser: BodyParser<Payloads>) {
    const { secrets, ackTimeoutMs = 2_000, maxBodyBytes = 2 ** 20, logger } = options
    this.maxBodyBytes = maxBodyBytes
    this.log = logOf(logger)
    this.callbacks = new UserCallbacks(options)
    this.#parser = parser
    this.#authenticate = secrets === undefined ? () => undefined : authenticator(secrets)
    this.#ackTimeoutMs = ackTimeoutMs
  }

  /**
   * Lets a callback in, before its body is read, or refuses it: then there is a receipt. What is let in must be given to
   * {@link DeliveryCore.receive}.
   */
  admit(method: unknown, headers: RequestHeaders): Receipt | undefined {
    if (String(method).toUpperCase() !== 'POST') {
      return this.refuse({ status: 405, reason: 'the method is not POST' })
    }
    const problem = this.#authenticate(headers)
    if (problem !== undefined) return this.refuse({ status: 401, ...problem })
    // In flight from here on, so that `drain` also waits for a delivery whose body is still arriving.
    this.#deliveries.begin()
    return undefined
  }

  /** Resolves with the answer to a callback, as soon as its handlers are done or `ackTimeoutMs` is over. */
  async receive(body: BodyRead, headers: RequestHeaders): Promise<Receipt> {
    const read = withinLimit(body, this.maxBodyBytes)
    if (read.kind === 'too-large') {
      this.#deliveries.end()
      return this.refuse({ status: 413, reason: `the body is larger than ${this.maxBodyBytes} bytes` })
    }
    const judged = judgeBody(read, headers, this.#parser)
    const progress = { isOver: false }
    const handled = this.#handle(judged, progress)

    const answer = answerWith(204)
    if (await isOverSoon(progress)) return { answer }
    if (await isOverWithin(handled, this.#ackTimeoutMs)) return { answer }
    const fields = { ...judged.logFields, ackTimeoutMs: this.#ackTimeoutMs }
    this.log('warn', fields, 'Answered before the handlers were done: they go on')
    return { answer, stillRunning: handled }
  }

  /** Resolves when everything of the user's that a body concerns is done. */
  async #handle(judged: JudgedBody<Payloads>, progress: Progress): Promise<void> {
    if (judged.kind === 'invalid') await this.callbacks.reportInvalid(judged)
    // All handlers run at the same time, and none rejects.
    else for (const handling of this.callbacks.notify(judged)) await handling
    progress.isOver = true
    this.#deliveries.end()
  }

  /** Reports that a request is refused, and returns its receipt. */
  refuse(refused: RefusedCallback): Receipt {
    this.callbacks.reportRefused(refused)
    return { answer: answerWith(refused.status) }
  }

  /** Resolves when no delivery is in flight, or after `timeoutMs`, with the number of those that are. */
  async drain(timeoutMs: number | undefined): Promise<number> {
    const drained = new Promise<void>((resolve) => this.#deliveries.whenOver(resolve))
    if (timeoutMs === undefined) await drained
    else await isOverWithin(drained, timeoutMs)
    return this.#deliveries.count
  }
}

function answerWith(status: CallbackAnswer['status']): CallbackAnswer {
  // A 405 must name the allowed methods (RFC 9110 section 15.5.6).
  return { status, headers: status === 405 ? { allow: 'POST' } : {} }
}

/** Limits a body that something else has read, such as a body parser. */
function withinLimit(read: BodyRead, maxBytes: number): BodyRead {
  if (read.kind !== 'body') return read
  try {
    return isLarger(read.body, maxBytes) ? { kind: 'too-large' } : read
  } catch (thrown) {
    // The body is a `Proxy` that throws even when its kind is asked for.
    return failedBody(thrown, read.body)
  }
}

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
function isLarger(body: unknown, maxBytes: number): boolean {
  if (typeof body !== 'string') return isBytes(body) && body.byteLength > maxBytes
  // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
  return body.length > maxBytes || (body.length * 3 > maxBytes && new Blob([body]).size > maxBytes)
}
