/** Sends notifications to the subscriptions that want them (docs/service.md, Delivery): one POST each, no retries. */
import { finished } from 'node:stream/promises'
import { createSecureContext, rootCertificates } from 'node:tls'
import pLimit, { type LimitFunction } from 'p-limit'
import { Agent } from 'undici'
import { TimeoutError } from '../errors.js'
import { isSuccess } from '../shared/status.js'
import { messageOf } from '../shared/text.js'
import type { Activity } from './activity.js'
import { type CallbackFault, delay, type FaultPlan } from './faults.js'
import type { OutgoingNotification } from './notification.js'
import type { SubscriptionRecord, SubscriptionStore } from './service/subscription-store.js'

/** The outcome of one callback. */
export interface CallbackResult {
  /** The subscription that the callback was for. */
  readonly subscriptionId: number
  /** Where the callback went. */
  readonly callbackUrl: string
  /** Status of the receiver's answer, if there was one. */
  readonly status?: number
  /** Why the callback failed. Missing after a success: a complete answer with 2xx in time. */
  readonly error?: Error
  /** Whether the subscription was no longer active when this callback was done. */
  readonly subscriptionEnded: boolean
}

/** Connections to one receiver: the callbacks of a burst wait here instead of flooding it. */
const connectionsPerOrigin = 64

interface CallbacksParts {
  readonly store: SubscriptionStore
  readonly faults: FaultPlan
  readonly activity: Activity
  /** Certificates in PEM that receivers may use besides public ones. */
  readonly ca: readonly string[]
  readonly timeoutMs: number
}

type Recipient = Pick<SubscriptionRecord, 'subscriptionId' | 'callbackUrl'>

export class Callbacks {
  readonly #parts: CallbacksParts
  readonly #agent: Agent
  readonly #queues = new Map<string, LimitFunction>()
  readonly #inFlight = new Set<AbortController>()
  #isClosed = false

  constructor(parts: CallbacksParts) {
    this.#parts = parts
    // Made once: reading the public authorities' certificates for every connection would take longer than TLS.
    const secureContext = createSecureContext({ ca: [...rootCertificates, ...parts.ca] })
    this.#agent = new Agent({ connections: connectionsPerOrigin, connect: { secureContext } })
  }

  /**
   * Sends one callback to each matching subscription, and resolves when all were answered or failed. Callbacks to one
   * subscription may overlap: failures are then consecutive in the order in which they complete.
   */
  async send(notification: OutgoingNotification): Promise<readonly CallbackResult[]> {
    const { store } = this.#parts
    return Promise.all(
      store.matching(notification.category, notification.username).map(async (recipient) => {
        const { subscriptionId, callbackUrl } = recipient
        const outcome = await this.#whenConnectionIsFree(callbackUrl, () =>
          this.#call(recipient, notification),
        )
        if (outcome.error === undefined) store.callbackSucceeded(subscriptionId)
        else store.callbackFailed(subscriptionId)
        return { subscriptionId, callbackUrl, ...outcome, subscriptionEnded: !store.isActive(subscriptionId) }
      }),
    )
  }

  /** Aborts callbacks in flight and closes every connection. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const controller of this.#inFlight) controller.abort(closedError())
    await this.#agent.destroy()
  }

  async #whenConnectionIsFree<Result>(callbackUrl: string, call: () => Promise<Result>): Promise<Result> {
    const { origin } = new URL(callbackUrl)
    const queue = this.#queues.get(origin) ?? pLimit(connectionsPerOrigin)
    this.#queues.set(origin, queue)
    try {
      return await queue(call)
    } finally {
      if (queue.activeCount + queue.pendingCount === 0) this.#queues.delete(origin)
    }
  }

  async #call(
    { subscriptionId, callbackUrl }: Recipient,
    { type, username, bodyFor }: OutgoingNotification,
  ): Promise<{ status?: number; error?: Error }> {
    const { store, faults, activity } = this.#parts
    // Read only now: while the callback waited, its parameters may have changed, or the subscription may have ended.
    const parameters = store.parameters(subscriptionId)
    if (parameters === undefined) {
      return { error: new Error('The subscription ended before this callback was sent') }
    }
    const fault = faults.takeForCallback(subscriptionId)
    const headers = { 'content-type': 'application/json', ...parameters }
    const body = bodyFor(subscriptionId)
    const callback = { subscriptionId, callbackUrl, type, username, headers, body }
    const finish = activity.beginCallback(fault === undefined ? callback : { ...callback, fault })
    const outcome = await outcomeOf(this.#post(callbackUrl, headers, body, fault), fault)
    const { error, ...answered } = outcome
    finish(error === undefined ? answered : { ...answered, error: messageOf(error) })
    return outcome
  }

  /** Resolves with the status of the answer, whose body is read and ignored. */
  async #post(
    callbackUrl: string,
    headers: Record<string, string>,
    body: string,
    fault: CallbackFault | undefined,
  ): Promise<number> {
    if (this.#isClosed) throw closedError()
    if (fault !== undefined && 'status' in fault) return fault.status
    const reset = fault !== undefined && 'reset' in fault ? fault.reset : undefined
    if (reset === 'before-processing') {
      throw new Error('An injected fault broke the connection before the callback was sent')
    }
    const { timeoutMs } = this.#parts
    const controller = new AbortController()
    const timer = setTimeout(() => {
      const message = `The callback was not answered within ${timeoutMs} ms`
      controller.abort(new TimeoutError(message, { timeoutMs, phase: 'answer' }))
    }, timeoutMs)
    this.#inFlight.add(controller)
    try {
      const { origin, pathname, search } = new URL(callbackUrl)
      const response = await this.#agent.request({
        origin,
        path: pathname + search,
        method: 'POST',
        headers,
        body,
        signal: controller.signal,
      })
      // Not `dump`, which accepts a body that breaks off or never ends.
      await finished(response.body.resume())
      if (fault !== undefined && 'delayMs' in fault) await delay(fault.delayMs, controller.signal)
      if (reset === 'after-processing') {
        throw new Error('An injected fault broke the connection before the answer arrived')
      }
      return response.statusCode
    } finally {
      clearTimeout(timer)
      this.#inFlight.delete(controller)
    }
  }
}

function closedError(): Error {
  return new Error('The emulator was closed before the callback was answered')
}

async function outcomeOf(
  answer: Promise<number>,
  fault: CallbackFault | undefined,
): Promise<{ status?: number; error?: Error }> {
  try {
    const status = await answer
    if (isSuccess(status)) return { status }
    const isInjected = fault !== undefined && 'status' in fault
    const source = isInjected ? 'An injected fault answered' : 'The callback was answered'
    return { status, error: new Error(`${source} with status ${status}`) }
  } catch (error) {
    return { error: withMessage(error) }
  }
}

/** Node.js gives an error without a message where every address of a host refused: then the messages of each. */
function withMessage(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  if (error.message !== '' || !(error instanceof AggregateError)) return error
  return new Error(error.errors.map(messageOf).join('; '), { cause: error })
}
