/** The default transport: undici, loaded at the first request, or a dispatcher that the caller made. */
import { type EventEmitter, setMaxListeners } from 'node:events'
import type { buildConnector } from 'undici'
import { ConfigurationError } from '../errors.js'
import { toConnectionError } from './connection-error.js'
import { Deadline } from './deadline.js'
import { type HttpRequest, type HttpResponse, readBody, type Transport } from './transport.js'

/**
 * What is used of an undici `Dispatcher`. Written out, so that dispatchers of undici 6, 7 and
 * 8 all fit, whichever version this package was compiled with.
 */
export interface DispatcherLike {
  /** Sends a request and resolves with the head of the answer. */
  request(options: {
    origin: string
    path: string
    method: 'POST' | 'PUT' | 'DELETE'
    headers: Record<string, string>
    body: string | null
    signal: EventEmitter
  }): Promise<{
    /** HTTP status. */
    statusCode: number
    /** By lower-case name. */
    headers: Record<string, string | string[] | undefined>
    /** The body, as it arrives. */
    body: AsyncIterable<Uint8Array>
  }>
  /** Without it, every request that gets no answer counts as one that may have been sent. */
  dispatch?(options: never, handler: never): boolean
}

interface OwnDispatcher extends DispatcherLike {
  destroy(): Promise<void>
}

/** Sockets per origin of the client's own dispatcher; a burst of calls beyond that waits in line. */
const maxConnections = 32

export class UndiciTransport implements Transport {
  readonly #closing = new AbortController()
  #dispatcher: DispatcherLike | undefined
  #own: Promise<OwnDispatcher> | undefined

  /** @param dispatcher - used as it is and never closed; without one, the transport opens and closes its own */
  constructor(dispatcher?: DispatcherLike) {
    this.#dispatcher = dispatcher && observed(dispatcher)
  }

  async send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse> {
    // The dispatcher's own method: undici's module-level `request` refuses dispatchers of other versions.
    const dispatcher = this.#dispatcher ?? (await this.#open())
    const { origin, pathname, search } = new URL(request.url)
    const sentBefore = deadline.requestsSent
    // What cannot be observed counts as sent.
    if (dispatcher.dispatch === undefined) deadline.requestsSent++
    try {
      const { statusCode, headers, body } = await dispatcher.request({
        origin,
        path: pathname + search,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        signal: deadline,
      })
      const retryAfter = headers['retry-after']
      return {
        status: statusCode,
        retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
        ...(await readBody(statusCode, body)),
      }
    } catch (error) {
      if (deadline.aborted) throw deadline.reason
      throw toConnectionError(error, request, deadline.requestsSent > sentBefore)
    }
  }

  /** Breaks off what is under way and closes what the transport opened itself. */
  async close(): Promise<void> {
    // One that could not be made has nothing to close.
    const dispatcher = await this.#own?.catch(() => undefined)
    this.#closing.abort()
    await dispatcher?.destroy()
  }

  async #open(): Promise<DispatcherLike> {
    this.#own ??= openDispatcher(this.#closing.signal)
    this.#dispatcher ??= observed(await this.#own)
    return this.#dispatcher
  }
}

/** @param closing - destroys every socket, also one that is still connecting, which undici would wait for */
async function openDispatcher(closing: AbortSignal): Promise<OwnDispatcher> {
  const { EnvHttpProxyAgent } = await import('undici')
  // Every socket listens to it; that is no leak.
  setMaxListeners(0, closing)
  const tls = { signal: closing } as buildConnector.BuildOptions
  try {
    return new EnvHttpProxyAgent({
      connections: maxConnections,
      connect: tls,
      proxyTls: tls,
      requestTls: tls,
      // The client's deadline covers the whole call; undici's own timeouts would only contradict a longer one.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  } catch {
    // Without the cause: it shows the address, which may hold the proxy's password.
    const message = 'must be the URL of a proxy'
    throw new ConfigurationError(`HTTPS_PROXY or HTTP_PROXY in the environment ${message}.`, {
      issues: [{ path: ['HTTPS_PROXY'], message }],
    })
  }
}

/**
 * The dispatcher, with requests that count themselves as sent. Undici starts a handler as soon as a connection
 * stands, and neither while it is being made nor while all are busy; the method was renamed in undici 7.
 *
 * Undici's own `compose` would do the same and cost a twelfth of the throughput: it wraps every handler.
 */
function observed(dispatcher: DispatcherLike): DispatcherLike {
  if (dispatcher.dispatch === undefined) return dispatcher
  return Object.create(dispatcher, {
    dispatch: {
      value(options: { signal?: unknown }, handler: object) {
        if (options.signal instanceof Deadline) countWhenStarted(handler, options.signal)
        return dispatcher.dispatch?.(options as never, handler as never)
      },
    },
  })
}

function countWhenStarted(handler: object, deadline: Deadline): void {
  for (const start of ['onConnect', 'onRequestStart']) {
    const original: unknown = Reflect.get(handler, start)
    if (typeof original !== 'function') continue
    Reflect.set(handler, start, (...args: unknown[]) => {
      if (!deadline.aborted) deadline.requestsSent++
      return Reflect.apply(original, handler, args)
    })
  }
}
