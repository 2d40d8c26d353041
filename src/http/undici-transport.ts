/** The default transport: undici, loaded at the first request, or a dispatcher that the caller made. */
import { setMaxListeners } from 'node:events'
import type { SecureContext } from 'node:tls'
import type { buildConnector } from 'undici'
import { trustedWith } from './authorities.js'
import { toConnectionError } from './connection-error.js'
import type { Deadline } from './deadline.js'
import { AnyVersionExchange, Exchange } from './exchange.js'
import { loadUndici } from './load-undici.js'
import { isProxyConfigured, PendingTunnels, proxyAddressError, proxyPool } from './proxy.js'
import { type HttpRequest, type HttpResponse, readBody, type Transport } from './transport.js'
import { untilAborted, withSignal } from './waits.js'

/**
 * The part of an undici `Dispatcher` that the client uses. Its type is written out here, so that dispatchers of undici
 * 6, 7 and 8 all fit, whichever version this package was compiled with.
 */
export interface DispatcherLike {
  /**
   * Sends a request and resolves with the head of the answer. Used where there is no `dispatch`: then every request
   * without an answer counts as one that may have been sent.
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
    /** The headers, by lower-case name. */
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

export class UndiciTransport implements Transport {
  readonly #closing = new AbortController()
  readonly #exchangeClass: typeof Exchange
  readonly #ca: string | undefined
  readonly #tunnels = new PendingTunnels()
  readonly #awaitedProxy = (host: string) => this.#tunnels.awaitedProxy(host)
  #dispatcher: DispatcherLike | undefined
  #own: Promise<OwnDispatcher> | undefined

  /**
   * @param options.dispatcher - used as it is and never closed; without one, the transport opens and closes its own
   * @param options.ca - certificates that the transport's own dispatcher trusts besides the public authorities
   */
  constructor({ dispatcher, ca }: { dispatcher?: DispatcherLike | undefined; ca?: string | undefined }) {
    this.#dispatcher = dispatcher
    this.#ca = ca
    this.#exchangeClass = dispatcher === undefined ? Exchange : AnyVersionExchange
  }

  send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse> {
    const dispatcher = this.#dispatcher
    deadline.awaitedProxy = this.#awaitedProxy
    return dispatcher === undefined
      ? untilAborted(this.#open(), deadline).then((own) => this.#sendOver(own, request, deadline))
      : this.#sendOver(dispatcher, request, deadline)
  }

  /** Breaks off what is in flight and closes what the transport opened itself. */
  async close(): Promise<void> {
    // A dispatcher that could not be made has nothing to close.
    const dispatcher = await this.#own?.catch(() => undefined)
    this.#closing.abort()
    await dispatcher?.destroy()
  }

  /** Sends by the dispatcher's own methods: undici's `request` function refuses dispatchers of other versions. */
  #sendOver(dispatcher: DispatcherLike, request: HttpRequest, deadline: Deadline): Promise<HttpResponse> {
    const { method, address, headers, body = null } = request
    const options = { origin: address.origin, path: address.path, method, headers, body }
    if (dispatcher.dispatch === undefined) return sendByRequest(dispatcher, options, request, deadline)
    return new Promise((resolve, reject) => {
      const exchange = new this.#exchangeClass(request, deadline, resolve, reject)
      try {
        // The types of these two differ between the versions of undici; what is used of them does not.
        dispatcher.dispatch?.(options as never, exchange as never)
      } catch (error) {
        exchange.onError(error)
      }
    })
  }

  async #open(): Promise<DispatcherLike> {
    this.#own ??= openDispatcher(this.#closing.signal, this.#ca, this.#tunnels)
    this.#dispatcher ??= await this.#own
    return this.#dispatcher
  }
}

/** @param closing - destroys every socket, also one that is still connecting, which undici would wait for */
async function openDispatcher(
  closing: AbortSignal,
  ca: string | undefined,
  tunnels: PendingTunnels,
): Promise<OwnDispatcher> {
  const { Agent, EnvHttpProxyAgent, Pool } = await loadUndici()
  // Every socket listens to this signal, which is no leak.
  setMaxListeners(0, closing)
  const secureContext = ca === undefined ? {} : { secureContext: await contextThatTrusts(ca) }
  const tls = { signal: closing, ...secureContext } as buildConnector.BuildOptions
  // The client's deadline covers the whole call; undici's own timeouts would only contradict a longer one.
  const options = { connections: maxConnections, connect: tls, headersTimeout: 0, bodyTimeout: 0 }
  // Without a proxy, the agent that looks for one at each request is left out.
  if (!isProxyConfigured()) return new Agent(options)
  const clientFactory = (proxy: URL, proxyOptions: object) =>
    proxyPool(Pool, proxy, { ...proxyOptions, tunnels })
  try {
    return new EnvHttpProxyAgent({ ...options, proxyTls: tls, requestTls: tls, clientFactory })
  } catch {
    throw proxyAddressError()
  }
}

/** One context for all connections: with a list of authorities, each connection would read all of them anew. */
async function contextThatTrusts(ca: string): Promise<SecureContext> {
  const { createSecureContext } = await import('node:tls')
  return createSecureContext({ ca: await trustedWith(ca) })
}

async function sendByRequest(
  dispatcher: DispatcherLike,
  options: DispatcherRequest,
  request: HttpRequest,
  deadline: Deadline,
): Promise<HttpResponse> {
  // Whether a connection stands cannot be seen from here: a request that was handed over counts as sent.
  deadline.requestLeft()
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
