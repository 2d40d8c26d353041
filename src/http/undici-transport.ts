/** The default transport: undici, loaded at the first request, or a dispatcher that the caller made. */
import { setMaxListeners } from 'node:events'
import type { buildConnector } from 'undici'
import { ConfigurationError } from '../errors.js'
import { addressOf } from './address.js'
import { toConnectionError } from './connection-error.js'
import { type Deadline, untilAborted, withSignal } from './deadline.js'
import { AnyVersionExchange, Exchange } from './exchange.js'
import { type HttpRequest, type HttpResponse, readBody, type Transport } from './transport.js'

/**
 * What is used of an undici `Dispatcher`. Written out, so that dispatchers of undici 6, 7 and
 * 8 all fit, whichever version this package was compiled with.
 */
export interface DispatcherLike {
  /**
   * Sends a request and resolves with the head of the answer. Used where there is no `dispatch`; then every
   * request that gets no answer counts as one that may have been sent.
   */
  request(options: {
    origin: string
    path: string
    method: 'POST' | 'PUT' | 'DELETE'
    headers: Record<string, string>
    body: string | null
    signal: AbortSignal
  }): Promise<{
    /** HTTP status. */
    statusCode: number
    /** By lower-case name. */
    headers: Record<string, string | string[] | undefined>
    /** The body, as it arrives. */
    body: AsyncIterable<Uint8Array>
  }>
  /** Sends a request and reports its progress to a handler, as undici calls it. */
  dispatch?(options: never, handler: never): boolean
}

type DispatcherRequest = Omit<Parameters<DispatcherLike['request']>[0], 'signal'>

interface OwnDispatcher extends DispatcherLike {
  destroy(): Promise<void>
}

/** Sockets per origin of the client's own dispatcher; a burst of calls beyond that waits in line. */
const maxConnections = 32

const proxyVariables = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY']

export class UndiciTransport implements Transport {
  readonly #closing = new AbortController()
  readonly #exchangeClass: typeof Exchange
  #dispatcher: DispatcherLike | undefined
  #own: Promise<OwnDispatcher> | undefined

  /** @param dispatcher - used as it is and never closed; without one, the transport opens and closes its own */
  constructor(dispatcher?: DispatcherLike) {
    this.#dispatcher = dispatcher
    this.#exchangeClass = dispatcher === undefined ? Exchange : AnyVersionExchange
  }

  send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse> {
    const dispatcher = this.#dispatcher
    return dispatcher === undefined
      ? untilAborted(this.#open(), deadline).then((own) => this.#sendOver(own, request, deadline))
      : this.#sendOver(dispatcher, request, deadline)
  }

  /** Breaks off what is under way and closes what the transport opened itself. */
  async close(): Promise<void> {
    // One that could not be made has nothing to close.
    const dispatcher = await this.#own?.catch(() => undefined)
    this.#closing.abort()
    await dispatcher?.destroy()
  }

  /** The dispatcher's own methods: undici's module-level `request` refuses dispatchers of other versions. */
  #sendOver(dispatcher: DispatcherLike, request: HttpRequest, deadline: Deadline): Promise<HttpResponse> {
    const { method, headers, body = null } = request
    const { origin, path } = addressOf(request.url)
    const options = { origin, path, method, headers, body }
    if (dispatcher.dispatch === undefined) return sendByRequest(dispatcher, options, request, deadline)
    return new Promise((resolve, reject) => {
      const exchange = new this.#exchangeClass(request, deadline, resolve, reject)
      try {
        // The versions' types for these differ, and what they have in common does not.
        dispatcher.dispatch?.(options as never, exchange as never)
      } catch (error) {
        exchange.onError(error)
      }
    })
  }

  async #open(): Promise<DispatcherLike> {
    this.#own ??= openDispatcher(this.#closing.signal)
    this.#dispatcher ??= await this.#own
    return this.#dispatcher
  }
}

/** @param closing - destroys every socket, also one that is still connecting, which undici would wait for */
async function openDispatcher(closing: AbortSignal): Promise<OwnDispatcher> {
  const { Agent, EnvHttpProxyAgent } = await import('undici')
  // Every socket listens to it; that is no leak.
  setMaxListeners(0, closing)
  const tls = { signal: closing } as buildConnector.BuildOptions
  // The client's deadline covers the whole call; undici's own timeouts would only contradict a longer one.
  const options = { connections: maxConnections, connect: tls, headersTimeout: 0, bodyTimeout: 0 }
  // Without a proxy, the agent that looks for one at each request is left out.
  if (!proxyVariables.some((name) => process.env[name])) return new Agent(options)
  try {
    return new EnvHttpProxyAgent({ ...options, proxyTls: tls, requestTls: tls })
  } catch {
    // Without the cause: it shows the address, which may hold the proxy's password.
    const message = 'must be the URL of a proxy'
    throw new ConfigurationError(`HTTPS_PROXY or HTTP_PROXY in the environment ${message}.`, {
      issues: [{ path: ['HTTPS_PROXY'], message }],
    })
  }
}

async function sendByRequest(
  dispatcher: DispatcherLike,
  options: DispatcherRequest,
  request: HttpRequest,
  deadline: Deadline,
): Promise<HttpResponse> {
  // When a connection stands is not to be seen from here: what was handed over counts as sent.
  deadline.requestsSent++
  try {
    return await withSignal(deadline, async (signal) => {
      const { statusCode, headers, body } = await dispatcher.request({ ...options, signal })
      const retryAfter = headers['retry-after']
      return {
        status: statusCode,
        retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
        ...(await readBody(statusCode, body)),
      }
    })
  } catch (error) {
    if (deadline.aborted) throw deadline.reason
    throw toConnectionError(error, request, true)
  }
}
