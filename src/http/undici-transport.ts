/** The default transport: undici, loaded at the first request, or a dispatcher that the caller made. */
import { toConnectionError } from './connection-error.js'
import { type HttpRequest, type HttpResponse, readBody, type Transport } from './transport.js'

/**
 * The one method that is used of an undici `Dispatcher`. Written out, so that dispatchers of undici 6, 7 and
 * 8 all fit, whichever version this package was compiled with.
 */
export interface DispatcherLike {
  request(options: {
    origin: string
    path: string
    method: 'POST' | 'PUT' | 'DELETE'
    headers: Record<string, string>
    body: string | null
    signal: AbortSignal
  }): Promise<{
    statusCode: number
    headers: Record<string, string | string[] | undefined>
    body: AsyncIterable<Uint8Array>
  }>
}

interface OwnDispatcher extends DispatcherLike {
  close(): Promise<void>
}

/** Sockets per origin of the client's own dispatcher; a burst of calls beyond that waits in line. */
const maxConnections = 32

export class UndiciTransport implements Transport {
  readonly #given: DispatcherLike | undefined
  #own: Promise<OwnDispatcher> | undefined

  /** @param dispatcher - used as it is and never closed; without one, the transport opens and closes its own */
  constructor(dispatcher?: DispatcherLike) {
    this.#given = dispatcher
  }

  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    // The dispatcher's own method: undici's module-level `request` refuses dispatchers of other versions.
    const dispatcher = this.#given ?? (await this.#open())
    const { origin, pathname, search } = new URL(request.url)
    try {
      const { statusCode, headers, body } = await dispatcher.request({
        origin,
        path: pathname + search,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        signal,
      })
      const retryAfter = headers['retry-after']
      return {
        status: statusCode,
        retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
        ...(await readBody(statusCode, body)),
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw toConnectionError(error, request.url)
    }
  }

  /** Lets the requests under way finish, then closes what the transport opened itself. */
  async close(): Promise<void> {
    const dispatcher = await this.#own
    await dispatcher?.close()
  }

  #open(): Promise<OwnDispatcher> {
    this.#own ??= openDispatcher()
    return this.#own
  }
}

async function openDispatcher(): Promise<OwnDispatcher> {
  const { EnvHttpProxyAgent } = await import('undici')
  // The client's deadline covers the whole call; undici's own timeouts would only contradict a longer one.
  return new EnvHttpProxyAgent({ connections: maxConnections, headersTimeout: 0, bodyTimeout: 0 })
}
