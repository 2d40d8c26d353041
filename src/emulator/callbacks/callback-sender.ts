/** Sends the callbacks of subscriptions (interface.md 4.2): one POST each, no redirects, no retries. */
import { createSecureContext, rootCertificates } from 'node:tls'
import pLimit, { type LimitFunction } from 'p-limit'
import { Agent } from 'undici'
import { TimeoutError } from '../../errors.js'

/** Connections to one receiver: a burst of notifications queues up here instead of drowning it. */
const connectionsPerOrigin = 64

/** One callback, looked up only when its turn comes. */
export interface Callback {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export class CallbackSender {
  readonly #agent: Agent
  readonly #timeoutMs: number
  readonly #limits = new Map<string, LimitFunction>()
  readonly #inFlight = new Set<AbortController>()
  #closed = false

  constructor(options: { ca: readonly string[]; timeoutMs: number }) {
    // Made once: to read the public authorities' certificates for every connection would take longer than TLS.
    const secureContext = createSecureContext({ ca: [...rootCertificates, ...options.ca] })
    this.#agent = new Agent({ connections: connectionsPerOrigin, connect: { secureContext } })
    this.#timeoutMs = options.timeoutMs
  }

  /**
   * Sends what `prepare` returns and resolves with the status of the answer, whose body is read and thrown
   * away. `prepare` is called when a connection is free; it throws to have nothing sent. Rejects with the
   * network's error, `TimeoutError`, or what `prepare` threw.
   */
  async send(callbackUrl: string, prepare: () => Callback): Promise<number> {
    const url = new URL(callbackUrl)
    const limit = this.#limitFor(url.origin)
    try {
      return await limit(() => this.#request(url, prepare()))
    } finally {
      if (limit.activeCount + limit.pendingCount === 0) this.#limits.delete(url.origin)
    }
  }

  /** Aborts what is under way and closes every connection. */
  async close(): Promise<void> {
    this.#closed = true
    for (const controller of this.#inFlight) controller.abort(closedError())
    await this.#agent.destroy()
  }

  async #request(url: URL, { headers, body }: Callback): Promise<number> {
    if (this.#closed) throw closedError()
    const controller = new AbortController()
    const timer = setTimeout(() => {
      const message = `The callback was not answered within ${this.#timeoutMs} ms`
      controller.abort(new TimeoutError(message, { timeoutMs: this.#timeoutMs }))
    }, this.#timeoutMs)
    this.#inFlight.add(controller)
    try {
      const response = await this.#agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
        signal: controller.signal,
      })
      await response.body.dump()
      controller.signal.throwIfAborted()
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
