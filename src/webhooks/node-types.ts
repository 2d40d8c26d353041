/** The parts of requests, responses and servers of Node.js that are used here: an app may not have the types of Node.js. */

/**
 * The parts of a request that the handler uses: an `IncomingMessage` of `node:http` and `node:https`, an
 * `Http2ServerRequest`, and what Express, Connect and NestJS make of them.
 */
export interface NodeRequest {
  /** The HTTP method. */
  readonly method?: string | undefined
  /** The headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Alternating names and values of the headers, as they were sent. */
  readonly rawHeaders?: readonly string[] | undefined
  /** The major version of HTTP: 1 or 2. */
  readonly httpVersionMajor?: number | undefined
  /** The stream of the request, with `node:http2` only. */
  readonly stream?:
    | {
        /** Closes the stream alone, with an error code (RFC 9113 section 7). */
        close(code: number): unknown
        /** The connection of the stream. */
        readonly session?: Http2Connection | undefined
      }
    | undefined
  /** The result of an earlier body parser. */
  readonly body?: unknown
  /** The body as it was before that. */
  readonly rawBody?: unknown
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
  /** The parts of the body as they arrive. */
  iterator(options: { destroyOnReturn: boolean }): AsyncIterable<Uint8Array | string>
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

/** A connection of HTTP/2. */
export interface Http2Connection {
  /** Takes no new streams, and ends once the open ones have ended. */
  close(): unknown
  /** Ends at once. */
  destroy(): unknown
  /** The connection has ended. */
  on(event: 'close', listener: () => void): unknown
}

/** The parts of a server that `DeliveryReceiver.close` uses: of `node:http`, `node:https` or `node:http2`. */
export interface CallbackServer {
  /** Stops listening; the callback is called when all connections are closed. */
  close(callback: () => void): unknown
  /** Ends the connections that wait for a request. */
  closeIdleConnections?(): void
  /** Ends all connections. */
  closeAllConnections?(): void
  /** Adds a listener before all others. */
  prependListener(event: 'connection', listener: () => void): unknown
  /** Adds a listener before all others. */
  prependListener(
    event: 'request',
    listener: (
      request: Pick<NodeRequest, 'httpVersionMajor'>,
      response: Pick<NodeResponse, 'headersSent' | 'setHeader'>,
    ) => void,
  ): unknown
}
