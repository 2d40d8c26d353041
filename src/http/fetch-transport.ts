/** A transport on any `fetch`: for runtimes without undici, and for mocks that see `globalThis.fetch`. */
import { toConnectionError } from './connection-error.js'
import type { Deadline } from './deadline.js'
import { type HttpRequest, type HttpResponse, readBody, type Transport } from './transport.js'
import { withSignal } from './waits.js'

/** The part of `fetch` that the client uses: `globalThis.fetch`, undici's and node-fetch's all fit. */
export type FetchLike = (
  url: string,
  init: {
    method: string
    headers: Record<string, string>
    body?: string
    signal: AbortSignal
    redirect: 'manual'
  },
) => Promise<FetchResponseLike>

/** The part of a `Response` that the client uses. */
export interface FetchResponseLike {
  /** HTTP status. */
  readonly status: number
  /** The headers, of which the client reads `Retry-After` only. */
  readonly headers?: {
    /** The value of a header, or `null`. */
    get(name: string): string | null
  }
  /** The body as a stream; without one, `text()` is asked. */
  readonly body?: unknown
  /** The body as text. */
  text(): Promise<string>
}

export class FetchTransport implements Transport {
  readonly #fetch: FetchLike

  constructor(fetch: FetchLike) {
    this.#fetch = fetch
  }

  async send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse> {
    // Whether a connection stands cannot be seen from here: a request that was handed over counts as sent.
    deadline.requestLeft()
    // Called as a function and not as a method: a browser's `fetch` refuses any `this` but its window.
    const fetch = this.#fetch
    try {
      return await withSignal(deadline, async (signal) => {
        const response = await fetch(request.address.url, {
          method: request.method,
          headers: request.headers,
          ...(request.body !== undefined && { body: request.body }),
          signal,
          redirect: 'manual',
        })
        return {
          status: response.status,
          retryAfter: response.headers?.get('retry-after') ?? undefined,
          ...(await readBody(response.status, chunksOf(response))),
        }
      })
    } catch (error) {
      if (deadline.aborted) throw deadline.reason
      throw toConnectionError(error, request, true)
    }
  }

  /** Nothing to close: the connections belong to whoever made the `fetch`. */
  async close(): Promise<void> {}
}

async function* chunksOf(response: FetchResponseLike): AsyncGenerator<Uint8Array> {
  const { body } = response
  if (body === null) return
  if (isAsyncIterable(body)) yield* body
  else yield new TextEncoder().encode(await response.text())
}

function isAsyncIterable(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body
}
