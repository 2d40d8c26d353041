/** Sends notifications to the matching subscriptions (docs/service.md, Delivery): one POST each, no retries. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createSecureContext, rootCertificates } from 'node:tls'
import pLimit, { type LimitFunction } from 'p-limit'
import { Agent, request } from 'undici'
import { TimeoutError } from '../errors.js'
import { loopbackHost } from '../shared/addresses.js'
import { BoundedBytes } from '../shared/bounded-bytes.js'
import { isSuccess } from '../shared/statuses.js'
import { messageOf } from '../shared/text.js'
import { beginningOf, type RecordedCallback } from './activity.js'
import type { CallbackFault } from './faults.js'
import type { OutgoingNotification } from './notification.js'
import type { ResolvedEmulatorOptions } from './options.js'
import { type EmulatorParts, maxBodyBytes } from './service/service.js'
import { injectedFault } from './words.js'

/** The outcome of one callback. */
export interface CallbackResult extends Pick<RecordedCallback, 'subscriptionId' | 'callbackUrl' | 'status'> {
  /** Why the callback failed. Missing after a success: a complete answer with 2xx in time. */
  readonly error?: Error
  /** Whether the subscription was no longer active when this callback was done. */
  readonly subscriptionEnded: boolean
}

/** Callbacks in flight to one receiver: the others of a burst wait here instead of flooding it. */
const maxInFlight = 64

type HeaderValues = Readonly<Record<string, string>>
type Sent = Pick<RecordedCallback, 'headers' | 'body'>
type About = Pick<RecordedCallback, 'subscriptionId' | 'callbackUrl' | 'notificationId' | 'type' | 'username'>
type Attempt = Pick<CallbackResult, 'status' | 'error'> & Pick<RecordedCallback, 'answer'>

export class Callbacks {
  readonly #parts: EmulatorParts
  readonly #timeoutMs: number
  readonly #agent: Agent
  /** By origin, so that a receiver which hangs holds up no other. */
  readonly #queues = new Map<string, LimitFunction>()

  /** @param ca - certificates in PEM that receivers may use besides public ones */
  constructor(parts: EmulatorParts, options: ResolvedEmulatorOptions, ca: readonly string[]) {
    this.#parts = parts
    this.#timeoutMs = options.callbackTimeoutMs
    // Made once: reading the public authorities' certificates for every connection would take longer than TLS.
    const secureContext = createSecureContext({ ca: [...rootCertificates, ...ca] })
    this.#agent = new Agent({ connections: maxInFlight, connect: { secureContext } })
  }

  /**
   * Sends one callback to each matching subscription, and resolves when all were answered or failed. Callbacks to one
   * subscription may overlap: failures are then consecutive in the order in which they complete.
   */
  send(notification: OutgoingNotification): Promise<readonly CallbackResult[]> {
    const { category, id: notificationId, type, username, notificationJson } = notification
    const recipients = this.#parts.store.matching(category, username)
    return Promise.all(
      recipients.map((recipient) =>
        this.#deliver({ ...recipient, notificationId, type, username }, (parameters) => ({
          headers: { 'content-type': 'application/json', ...parameters },
          body: `{"subscriptionId":${recipient.subscriptionId},"notification":${notificationJson}}`,
        })),
      ),
    )
  }

  /** Sends a callback once more, byte for byte, if its subscription is still active. */
  resend(callback: RecordedCallback): Promise<CallbackResult> {
    const { headers, body, subscriptionId, callbackUrl, notificationId, type, username } = callback
    const about = { subscriptionId, callbackUrl, notificationId, type, username }
    return this.#deliver(about, () => ({ headers, body }))
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /** One callback. Headers and body are made when the callback is sent: a parameter may change until then. */
  #deliver(about: About, requestFor: (parameters: HeaderValues) => Sent): Promise<CallbackResult> {
    const { store, faults, activity } = this.#parts
    const { subscriptionId, callbackUrl } = about
    const { origin } = new URL(callbackUrl)
    const queue = this.#queues.get(origin) ?? pLimit(maxInFlight)
    this.#queues.set(origin, queue)
    return queue(async () => {
      const subscription = store.get(subscriptionId)
      if (subscription === undefined) {
        const error = new Error('The subscription ended before this callback was sent')
        return { subscriptionId, callbackUrl, error, subscriptionEnded: true }
      }
      const fault = faults.take('callback', subscriptionId)
      const request = requestFor(subscription.parameters)
      const finish = activity.beginCallback({ ...about, ...request, ...(fault && { fault }) })
      const { error, answer, ...status } = await this.#post(callbackUrl, request, fault)
      finish({ ...status, ...(answer && { answer }), ...(error && { error: messageOf(error) }) })
      store.callbackDone(subscriptionId, error === undefined)
      const subscriptionEnded = store.get(subscriptionId) === undefined
      return { subscriptionId, callbackUrl, ...status, ...(error && { error }), subscriptionEnded }
    })
  }

  async #post(
    callbackUrl: string,
    { headers, body }: Sent,
    fault: CallbackFault | undefined,
  ): Promise<Attempt> {
    const { status, delayMs, reset }: { status?: number; delayMs?: number; reset?: string } = fault ?? {}
    if (status !== undefined) return answered(status, `${injectedFault} answered`)
    const lostBefore = (moment: string) => ({
      error: new Error(`${injectedFault} broke the connection before ${moment}`),
    })
    if (reset === 'before-processing') return lostBefore('the callback was sent')
    const timeoutMs = this.#timeoutMs
    const timeout = AbortSignal.timeout(timeoutMs)
    const signal = AbortSignal.any([this.#parts.closing, timeout])
    try {
      signal.throwIfAborted()
      const sent = { method: 'POST', headers, body } as const
      const response = await request(callbackUrl, { ...sent, dispatcher: this.#agent, signal })
      // To its end: a body that breaks off or never ends is a failure.
      const received = new BoundedBytes(maxBodyBytes)
      const isComplete = await received.addAll(response.body)
      if (!isComplete) return { error: new Error(`The body of the answer is over ${maxBodyBytes} bytes`) }
      const answer = { headers: flat(response.headers), ...beginningOf(received.text) }
      if (delayMs) await sleep(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted())
      if (reset === 'after-processing') return lostBefore('the answer arrived')
      return { ...answered(response.statusCode, 'The callback was answered'), answer }
    } catch (error) {
      if (error !== timeout.reason) return { error: withMessage(error, callbackUrl) }
      const message = `The callback was not answered within ${timeoutMs} ms`
      return { error: new TimeoutError(message, { timeoutMs, phase: 'answer' }) }
    }
  }
}

/** The values of a duplicate header are in one line. */
function flat(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderValues {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]))
}

/** @param source - the beginning of the sentence about a failure */
function answered(status: number, source: string): Attempt {
  return isSuccess(status) ? { status } : { status, error: new Error(`${source} with status ${status}`) }
}

/** If every address of a host refused, the error of Node.js has no message: then it gets the messages of all addresses. */
function withMessage(error: unknown, callbackUrl: string): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  if (Object(error).code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    const advice = loopbackHost.test(new URL(callbackUrl).hostname)
      ? 'write `http:` in the callback URL, or serve it with `emulator.tls`'
      : 'write the port of the receiver that speaks TLS in the callback URL'
    return new Error(`The port answers, but not in TLS: ${advice}`, { cause: error })
  }
  if (error.message !== '' || !(error instanceof AggregateError)) return error
  return new Error(error.errors.map(messageOf).join('; '), { cause: error })
}
