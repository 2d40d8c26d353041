/** Requests and answers, and the interface of the transports that carry them. */
import { withoutEndingSlashes } from '../shared/addresses.js'
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

/** The address of a path, which may have a query, below the origin and path of a base address. */
export function addressBelow({ host, origin, pathname }: URL, path: string): Address {
  const wholePath = withoutEndingSlashes(pathname) + path
  const url = origin + wholePath
  return { url, origin, path: wholePath, host, shown: url.replace(/\?.*/s, '') }
}

/** A request as it is sent, with its Authorization header. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly address: Address
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** A request before it is authorized. */
export interface UnauthorizedRequest extends Pick<HttpRequest, 'method' | 'address' | 'body'> {
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Secrets in the request: no error shows them, even if the server returns them. */
  readonly secrets: readonly string[]
  /** Secrets in the body of an answer, so that no log line shows one that a header repeats. */
  readonly secretsIn?: (body: string) => readonly string[]
  /** Whether the request may be repeated after an unknown outcome. */
  readonly isRepeatable: boolean
  /** What the request does, as the rest of "Could not …", e.g. `unsubscribe`. */
  readonly action: string
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
  readonly requestSent: boolean
}

export interface Transport {
  /** The variable that names a proxy for requests, for messages. */
  readonly proxy?: string | undefined
  /** Sends once and reads the whole answer, redirects too. Rejects only before anything is sent. */
  send(request: HttpRequest, deadline: Deadline): Promise<HttpResponse | NoResponse>
  /** Closes the connections that the transport opened itself; the caller's stay open. */
  close?(): Promise<void>
}

/** Limits memory to 1 MiB; answers of this service have a few dozen bytes. */
export const maxBodyBytes = 1024 * 1024

/** How long the body of an answer that is no success may take to arrive, in milliseconds: its status is enough. */
export const errorBodyMs = 2_000
