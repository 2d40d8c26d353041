/** One HTTP exchange: the interface that the undici and fetch transports implement. */
import { withoutEndingSlashes } from '../shared/http-syntax.js'
import { isSuccess } from '../shared/status.js'
import type { Deadline } from './deadline.js'

/** The address of a request, parsed once into the parts for undici, fetch, errors and logs. */
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

/** The outcome of a request without an answer. */
export interface NoResponse {
  /** The network's error, or the reason of the deadline. */
  readonly error: unknown
  /** Whether the request may have been sent. `false` proves that the server cannot have seen it. */
  readonly mayHaveLeft: boolean
}

export interface Transport {
  /** The proxy that requests may go through, for messages. */
  readonly proxy?: string | undefined
  /**
   * Sends once and reads the whole answer, whatever its status; redirects are not followed. Rejects only before anything
   * is sent, with an error of this package or the deadline's reason.
   */
  send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse | NoResponse>
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

/** Limits memory to 1 MiB; answers of this service have a few dozen bytes. */
export const maxBodyBytes = 1024 * 1024

/** Whether an incomplete body is an error: only for a success. For an error answer the status is enough. */
export function isBodyNeeded(status: number): boolean {
  return isSuccess(status)
}

/** How long a body that is not needed may take to arrive, in milliseconds. */
export const unneededBodyMs = 2_000
