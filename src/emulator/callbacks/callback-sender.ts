/** Sends the callbacks of subscriptions (docs/service.md, Delivery): one POST each, no redirects, no retries. */
import { createSecureContext, rootCertificates } from 'node:tls'
import pLimit, { type LimitFunction } from 'p-limit'
import { Agent } from 'undici'
import { TimeoutError } from '../../errors.js'
import { delay } from '../delay.js'
import type { CallbackFault } from '../service/faults.js'

/** Connections to one receiver: a burst of notifications queues up here instead of drowning it. */
const connectionsPerOrigin = 64

/** What is sent to a receiver, and the fault that it meets. */
export interface Callback {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly fault?: CallbackFault | undefined
}

/**
 * Sends a callback and resolves with the status of the answer, whose body is read and thrown away. Rejects with the
 * network's error, or `TimeoutError`.
 */
export type PostCallback = (callback: Callback) => Promise<number>

export class CallbackSender {
  readonly #agent: Agent
  readonly #timeoutMs: number
  readonly #limits = new Map<string, LimitFunction>()
  readonly #inFlight = new Set<AbortController>()
  #isClosed = false

  constructor(options: { ca: readonly string[]; timeoutMs: number }) {
    // Made once: reading the public authorities' certificates for every connection would take longer than TLS.
    const secureContext = createSecureContext({ ca: [...rootCertificates, ...options.ca] })
    this.#agent = new Agent({ connections: connectionsPerOrigin, connect: { secureContext } })
    this.#timeoutMs = options.timeoutMs
  }

  /** Calls `use` when a connection to the receiver is free, and resolves with what it returns. */
  async whenFree<Result>(callbackUrl: string, use: (post: PostCallback) => Promise<Result>): Promise<Result> {
    const url = new URL(callbackUrl)
    const limit = this.#limitFor(url.origin)
    try {
      return await limit(() => use((callback) => this.#post(url, callback)))
    } finally {
      if (limit.activeCount + limit.pendingCount === 0) this.#limits.delete(url.origin)
    }
  }

  /** Aborts callbacks in flight and closes every connection. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const controller of this.#inFlight) controller.abort(closedError())
    await this.#agent.destroy()
  }

  async #post(url: URL, { headers, body, fault }: Callback): Promise<number> {
    if (this.#isClosed) throw closedError()
    if (fault !== undefined && 'status' in fault) return fault.status
    const reset = fault !== undefined && 'reset' in fault ? fault.reset : undefined
    if (reset === 'before-processing') {
      throw new Error('An injected fault broke the connection before the callback was sent')
    }
    const controller = new AbortController()
    const timer = setTimeout(() => {
      const message = `The callback was not answered within ${this.#timeoutMs} ms`
      controller.abort(new TimeoutError(message, { timeoutMs: this.#timeoutMs, phase: 'answer' }))
    }, this.#timeoutMs)
    this.#inFlight.add(controller)
    try {
      const response = await this.#agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'POST',
        headers,
        body,
        signal: controller.signal,
      })
      await response.body.dump()
      controller.signal.throwIfAborted()
      if (fault !== undefined && 'delayMs' in fault) await delay(fault.delayMs, controller.signal)
      if (reset === 'after-processing')
        throw new Error('An injected fault broke the connection before the answer arrived')
      return response.statusCode
    } finally {
      clearTimeout(timer)
      this.#inFlight.delete(controller)
    }
  }

  #limitFor(origin: string): LimitFunction {
    let limit = this.#limits.get(origin)
    if (limit === undefined) {
      limit = pLimit(connectionsPerOrigin)
      this.#limits.set(origin, limit)
    }
    return limit
  }
}

function closedError(): Error {
  return new Error('The emulator was closed before the callback was answered')
}
