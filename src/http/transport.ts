/** One HTTP exchange: the interface that the undici and fetch transports implement. */
import { BoundedBytes } from '../shared/bounded-bytes.js'
import { withoutEndingSlashes } from '../shared/http-syntax.js'
import { isSuccess } from '../shared/status.js'
import { settlesWithin } from '../shared/time-limit.js'
import type { Deadline, Progress, Tunnels } from './deadline.js'

/** Where a request goes, parsed once: in the parts that undici, fetch, errors and logs ask for. */
export interface Address {
  /** The whole address, for fetch. */
  readonly url: string
  readonly origin: string
  /** Path and query, as they are sent. */
  readonly path: string
  /** Host and port, for messages. */
  readonly host: string
  /** The address without its query, which may hold a secret: for errors and logs. */
  readonly shown: string
}

/** A request as it is sent, with its Authorization header. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly address: Address
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export interface HttpResponse {
  readonly status: number
  /** The value of a header, by its lower-case name; the first one, if there are several. */
  header(name: string): string | undefined
  /** The body as text, cut off at {@link maxBodyBytes}. */
  readonly body: string
  /** False when the body is longer than {@link maxBodyBytes}, or an error answer's body broke off or took too long. */
  readonly bodyComplete: boolean
}

export interface Transport {
  /** The tunnels through a proxy, if the transport makes any. */
  readonly tunnels?: Tunnels
  /**
   * Sends once and reads the whole answer, whatever its status; redirects are not followed. Sets `progress.phase` to
   * `answer` when the request is sent, or may have been: before that the server cannot have seen it.
   *
   * @throws what the network throws, or the deadline's reason as soon as the deadline is aborted
   */
  send(request: HttpRequest, deadline: Deadline, progress: Progress): Promise<HttpResponse>
  /** Closes the connections that the transport opened itself. */
  close(): Promise<void>
}

/**
 * The address of a path under a base address.
 *
 * @param base - query, fragment and slashes at the end are left out
 * @param path - begins with a slash; may have a query
 */
export function addressBelow(base: URL, path: string): Address {
  const { host, origin } = base
  const wholePath = withoutEndingSlashes(base.pathname) + path
  const [pathWithoutQuery] = wholePath.split('?', 1)
  return {
    url: origin + wholePath,
    origin,
    path: wholePath,
    host,
    shown: `${origin}${pathWithoutQuery}`,
  }
}

/** Keeps memory bounded: 1 MiB, while answers of this service have a few dozen bytes. */
export const maxBodyBytes = 1024 * 1024

/** The pieces of a body as they arrive, as UTF-8 text up to {@link maxBodyBytes}. */
export class BodyText {
  readonly #bytes = new BoundedBytes(maxBodyBytes)

  /** Keeps a piece; `false` once there is more than is kept. */
  add(piece: Uint8Array): boolean {
    if (this.#bytes.add(piece)) return true
    this.#bytes.add(piece.subarray(0, maxBodyBytes - this.#bytes.size))
    return false
  }

  toString(): string {
    return utf8.decode(this.#bytes.bytes)
  }
}

/** Whether an incomplete body is an error: only after a success. For an error answer the status is enough. */
export function isBodyNeeded(status: number): boolean {
  return isSuccess(status)
}

/** How long a body that is not needed may take to arrive, in milliseconds. */
export const unneededBodyMs = 2_000

/**
 * Reads a body from a stream; see {@link BodyText} and {@link isBodyNeeded}.
 *
 * @param controller - aborts the exchange: called if the rest of the body is left unread
 */
export async function readBody(
  status: number,
  chunks: AsyncIterable<Uint8Array>,
  controller: AbortController,
): Promise<Pick<HttpResponse, 'body' | 'bodyComplete'>> {
  const text = new BodyText()
  const reading = readInto(text, chunks)
  const bodyComplete = isBodyNeeded(status)
    ? await reading
    : (await settlesWithin(unneededBodyMs, reading)) && (await reading.catch(() => false))
  if (!bodyComplete) controller.abort()
  return { body: text.toString(), bodyComplete }
}

/** @returns whether the text holds the whole body */
async function readInto(text: BodyText, chunks: AsyncIterable<Uint8Array>): Promise<boolean> {
  const iterator = chunks[Symbol.asyncIterator]()
  for (;;) {
    const { done, value } = await iterator.next()
    if (done) return true
    // Not by `for await`, which would wait for a sender that hangs.
    if (!text.add(value)) return false
  }
}

const utf8 = new TextDecoder()
