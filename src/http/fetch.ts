/** Transports on what the caller gives: any `fetch`, or a dispatcher of any undici. */
import { BoundedBytes } from '../shared/bounded-bytes.js'
import { isStatus, isSuccess } from '../shared/statuses.js'
import { settlesWithin } from '../shared/waits.js'
import { provesUnsent } from './connection-error.js'
import { errorBodyMs, type HttpRequest, type HttpResponse, maxBodyBytes, type Transport } from './exchange.js'

/** The part of `fetch` that the client uses: `globalThis.fetch`, undici's and node-fetch's all fit. */
export type FetchLike = (
  url: string,
  init: {
    method: string
    headers: Record<string, string>
    body?: string
    signal: AbortSignal
    redirect: 'manual'
    /** Some frameworks replace `fetch` by one that keeps answers, also to a POST. */
    cache: 'no-store'
  },
) => Promise<FetchResponseLike>

/** The part of a `Response` that the client uses. */
export interface FetchResponseLike {
  readonly status: number
  /** The headers, of which the client reads `Retry-After` and those that name a request. */
  readonly headers?: {
    /** `null` without such a header. */
    get(name: string): string | null
  }
  /** The body as a stream; otherwise `text()` is called. */
  readonly body?: unknown
  /** The body as text. */
  text(): Promise<string>
}

/** The part of an undici `Dispatcher` that the client uses, written out, so that those of undici 6, 7 and 8 all fit. */
export interface DispatcherLike {
  /** Sends a request and resolves with the head of the answer. */
  request(options: {
    origin: string
    path: string
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
    headers: Record<string, string>
    body: string | null
    signal: AbortSignal
  }): Promise<{
    statusCode: number
    headers: Record<string, string | string[] | undefined>
    body: AsyncIterable<Uint8Array>
  }>
}

/** The head of an answer, and its body as it arrives. */
interface Head extends Pick<HttpResponse, 'status' | 'header'> {
  readonly pieces: AsyncIterable<Uint8Array>
}

/** For runtimes without undici, and for mocks that replace `globalThis.fetch`. */
export function fetchTransport(fetch: FetchLike): Transport {
  return transportOn(async ({ address, body, headers, method }, signal) => {
    const init = { method, headers, ...(body !== undefined && { body }), signal } as const
    const answer = await fetch(address.url, { ...init, redirect: 'manual', cache: 'no-store' })
    return {
      status: answer.status,
      header: (name) => answer.headers?.get(name) ?? undefined,
      pieces: piecesOf(answer),
    }
  })
}

/** By the dispatcher's own `request`, because undici's function refuses dispatchers of other versions. */
export function dispatcherTransport(dispatcher: DispatcherLike): Transport {
  return transportOn(async ({ address, body = null, headers, method }, signal) => {
    const { origin, path } = address
    const answer = await dispatcher.request({ origin, path, method, headers, body, signal })
    return {
      status: answer.statusCode,
      header: (name) => [answer.headers[name]].flat()[0],
      pieces: answer.body,
    }
  })
}

function transportOn(ask: (request: HttpRequest, signal: AbortSignal) => Promise<Head>): Transport {
  /** @throws the error of a body that breaks off, if the answer is a success */
  async function exchange(request: HttpRequest, controller: AbortController): Promise<HttpResponse> {
    const { header, pieces, status } = await ask(request, controller.signal)
    // A mock's mistake, or a redirect that a browser hides.
    if (!isStatus(status)) throw new Error('the answer is no response: it has no HTTP status')
    const body = new BoundedBytes(maxBodyBytes)
    const reading = body.addAll(pieces)
    const bodyComplete = isSuccess(status)
      ? await reading
      : (await settlesWithin(errorBodyMs, reading)) && (await reading.catch(() => false))
    if (!bodyComplete) controller.abort()
    return { status, header, body: body.text, bodyComplete }
  }

  return {
    async send(request, deadline) {
      const controller = new AbortController()
      try {
        const answer = exchange(request, controller)
        return await deadline.waitFor(answer, 'answer', { abandon: () => controller.abort(deadline.reason) })
      } catch (error) {
        return { error, requestSent: !provesUnsent(error) }
      }
    },
  }
}

/** The body as a stream if there is one, because a stream can be limited. */
async function* piecesOf(answer: FetchResponseLike): AsyncGenerator<Uint8Array> {
  const { body } = answer
  if (body === null) return
  if (typeof body === 'object' && Symbol.asyncIterator in body) yield* body as AsyncIterable<Uint8Array>
  else yield new TextEncoder().encode(await answer.text())
}
