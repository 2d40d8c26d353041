/** One HTTP exchange: the seam between the client and undici or fetch. */
import type { Deadline } from './deadline.js'

export interface HttpRequest {
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Everything in it that must not appear in what an error shows, should the server send it back. */
  readonly secrets: readonly string[]
}

export interface HttpResponse {
  readonly status: number
  /** The `Retry-After` header as it came. */
  readonly retryAfter: string | undefined
  /** The body as text, cut off at {@link maxBodyBytes}. */
  readonly body: string
  /** False when the body is longer than {@link maxBodyBytes}, or an error answer's body broke off. */
  readonly bodyComplete: boolean
}

export interface Transport {
  /**
   * Sends once and reads the whole answer, whatever its status; redirects are not followed. Counts
   * `deadline.requestsSent` when the request leaves: until then the server has surely not seen it.
   *
   * @throws `ConnectionError` when there is no answer, or the deadline's reason once it is aborted.
   */
  send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse>
  /** Closes the connections that the transport opened itself. */
  close(): Promise<void>
}

/** Answers of this service are a few dozen bytes; 1 MiB is far beyond any and keeps memory bounded. */
export const maxBodyBytes = 1024 * 1024

/**
 * Reads a body as UTF-8 text up to {@link maxBodyBytes}.
 *
 * A body that breaks off is an error after a success status, whose content is needed; after any other
 * status the status is the answer, and what arrived of its body is kept.
 */
export async function readBody(
  status: number,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Pick<HttpResponse, 'body' | 'bodyComplete'>> {
  const iterator = chunks[Symbol.asyncIterator]()
  const parts: Uint8Array[] = []
  let remaining = maxBodyBytes
  try {
    for (;;) {
      const { done, value } = await iterator.next()
      if (done) return { body: decode(parts), bodyComplete: true }
      parts.push(value.subarray(0, remaining))
      remaining -= value.byteLength
      if (remaining >= 0) continue
      // Not waited for: a body whose sender hangs would hold up the answer, which is complete enough.
      iterator.return?.().catch(() => {})
      return { body: decode(parts), bodyComplete: false }
    }
  } catch (error) {
    if (status >= 200 && status <= 299) throw error
    return { body: decode(parts), bodyComplete: false }
  }
}

const utf8 = new TextDecoder()

function decode(parts: readonly Uint8Array[]): string {
  return utf8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts))
}
