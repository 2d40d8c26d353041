/** A transport on any `fetch`: for runtimes without undici, and for mocks that replace `globalThis.fetch`. */
import { provesNothingSent } from './connection-error.js'
import type { Deadline, Progress } from './deadline.js'
import { type HttpRequest, type HttpResponse, readBody, type Transport } from './transport.js'

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
  /** The headers, of which the client reads `Retry-After` and those that name a request. */
  readonly headers?: {
    /** The value of a header, or `null`. */
    get(name: string): string | null
  }
  /** The body as a stream; if it is none, `text()` is called. */
  readonly body?: unknown
  /** The body as text. */
  text(): Promise<string>
}

export class FetchTransport implements Transport {
  readonly #fetch: FetchLike

  constructor(fetch: FetchLike) {
    this.#fetch = fetch
  }

  async send(request: HttpRequest, deadline: Deadline, progress: Progress): Promise<HttpResponse> {
    const { address, body, headers, method } = request
    // `fetch` does not show whether it has a connection: a request that was handed over may have been sent.
    progress.phase = 'answer'
    // Called as a function and not as a method: a browser's `fetch` refuses any `this` but its window.
    const fetch = this.#fetch
    try {
      return await deadline.withController(async (controller) => {
        const response = await fetch(address.url, {
          method,
          headers,
          ...(body !== undefined && { body }),
          signal: controller.signal,
          redirect: 'manual',
        })
        return {
          status: response.status,
          header: (name) => response.headers?.get(name) ?? undefined,
          ...(await readBody(response.status, chunksOf(response), controller)),
        }
      })
    } catch (error) {
      if (!deadline.aborted && provesNothingSent(error)) progress.phase = 'connection'
      throw error
    }
  }

  /** Nothing to close: the connections belong to the caller's `fetch`. */
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
