/** One HTTP exchange: the seam between the client and undici or fetch. */
import type { Address } from './address.js'
import type { Deadline } from './deadline.js'

export interface HttpRequest {
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly address: Address
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Everything in the request that must not appear in what an error shows, should the server send it back. */
  readonly secrets: () => readonly string[]
}

/** A subscription call before it has its Authorization header. */
export interface UnauthorizedRequest {
  readonly method: HttpRequest['method']
  readonly address: Address
  /** The body, in form encoding. */
  readonly body?: string
  /** Headers of the caller's. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** As in {@link HttpRequest}, but for the authorization. */
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
   * Sends once and reads the whole answer, whatever its status; redirects are not followed. Calls
   * `deadline.requestLeft` when the request leaves: until then the server has surely not seen it.
   *
   * @throws `ConnectionError` when there is no answer, or the deadline's reason as soon as the deadline is aborted
   */
  send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse>
  /** Closes the connections that the transport opened itself. */
  close(): Promise<void>
}

/** Answers of this service are a few dozen bytes; 1 MiB is far beyond any and keeps memory bounded. */
export const maxBodyBytes = 1024 * 1024

/** The pieces of a body as they arrive, as UTF-8 text up to {@link maxBodyBytes}. */
export class BodyText {
  readonly #parts: Uint8Array[] = []
  #remaining = maxBodyBytes

  /** Keeps a piece; `false` once there is more than is kept. */
  add(piece: Uint8Array): boolean {
    if (this.#remaining > 0) this.#parts.push(piece.subarray(0, this.#remaining))
    this.#remaining -= piece.byteLength
    return this.#remaining >= 0
  }

  toString(): string {
    const parts = this.#parts
    return utf8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts))
  }
}

/** Whether a body that breaks off is an error: after a success, whose content is needed. Else the status is enough. */
export function isBodyNeeded(status: number): boolean {
  return status >= 200 && status <= 299
}

/** Reads a body from a stream; see {@link BodyText} and {@link isBodyNeeded}. */
export async function readBody(
  status: number,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Pick<HttpResponse, 'body' | 'bodyComplete'>> {
  const iterator = chunks[Symbol.asyncIterator]()
  const text = new BodyText()
  try {
    for (;;) {
      const { done, value } = await iterator.next()
      if (done) return { body: text.toString(), bodyComplete: true }
      if (text.add(value)) continue
      // Not waited for: a body whose sender hangs would hold up the answer, which is complete enough.
      iterator.return?.().catch(() => {})
      return { body: text.toString(), bodyComplete: false }
    }
  } catch (error) {
    if (isBodyNeeded(status)) throw error
    return { body: text.toString(), bodyComplete: false }
  }
}

const utf8 = new TextDecoder()
