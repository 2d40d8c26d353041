/**
 * The parts of a request and a response that the Node handler uses: those of `node:http`, `node:https` and
 * `node:http2`, and of what Express, Connect and NestJS make of them.
 */

/** The parts of an `IncomingMessage` or an `Http2ServerRequest` that the handler uses. */
export interface NodeRequest {
  /** The HTTP method. */
  readonly method?: string | undefined
  /** The headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Names and values of the headers in turn, as they were sent. */
  readonly rawHeaders?: readonly string[] | undefined
  /** The major version of HTTP: 1 or 2. */
  readonly httpVersionMajor?: number | undefined
  /** The stream of the request, with `node:http2` only. */
  readonly stream?:
    | {
        /** Closes the stream alone, with an error code (RFC 9113 section 7). */
        close(code: number): unknown
      }
    | undefined
  /** What a body parser that ran before left here. */
  readonly body?: unknown
  /** Whether the connection is gone. */
  readonly destroyed?: boolean | undefined
  /** Whether the body was read to its end. */
  readonly readableEnded?: boolean | undefined
  /** Whether something has begun to read the body. */
  readonly readableDidRead?: boolean | undefined
  /** The encoding that `setEncoding` was called with, if it was. */
  readonly readableEncoding?: string | null | undefined
  /** Keeps what arrives until it is taken. */
  pause?(): unknown
  /** Takes what has arrived of the body, or `null`. Platforms without a server may have requests without it. */
  read?(): Uint8Array | string | null
  /** A part of the body arrived. */
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
  /** The body is over, or the connection is. */
  on(event: 'end' | 'close', listener: () => void): unknown
  /** The connection broke. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Reads on without listening: the rest of the body is dropped. */
  resume(): unknown
}

/** The parts of a `ServerResponse` or an `Http2ServerResponse` that the handler uses. */
export interface NodeResponse {
  /** HTTP status of the answer. */
  statusCode: number
  /** Whether something else has answered. */
  readonly headersSent: boolean
  /** Sets a header of the answer. */
  setHeader(name: string, value: string): unknown
  /** Sends the answer, without a body. */
  end(): unknown
}
