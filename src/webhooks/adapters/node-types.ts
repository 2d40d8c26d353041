/** The parts of requests, responses and servers of Node.js that are used here: an app may not have the types of Node.js. */

/**
 * The parts of a request that the handler uses: an `IncomingMessage` of `node:http` and `node:https`, an
 * `Http2ServerRequest`, and what Express, Connect and NestJS make of them.
 */
export interface NodeRequest {
  readonly method?: string | undefined
  /** The headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly httpVersionMajor?: number | undefined
  /** The result of an earlier body parser. */
  readonly body?: unknown
  /** The body before it was parsed. */
  readonly rawBody?: unknown
  /** Whether the body was read to its end. */
  readonly readableEnded?: boolean | undefined
  /** Whether something has begun to read the body. */
  readonly readableDidRead?: boolean | undefined
  /** The connection, and its server. */
  readonly socket?: NodeConnection & { readonly server?: NodeServer | undefined }
  readonly stream?: { readonly session?: NodeConnection | undefined } | undefined
  /** Listens to the body. */
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
  /** Listens to the end of the body and of the connection. */
  on(event: 'end' | 'error' | 'close', listener: (error?: unknown) => void): unknown
  /** Listens no longer. */
  off(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
  /** Reads on without listening: the rest of the body is dropped. */
  resume(): unknown
}

/** A socket, or a session of HTTP/2. */
export interface NodeConnection {
  /** Ends a session once its requests are answered; a socket has no such method. */
  close?(): void
  /** Ends the connection at once. */
  destroy(): unknown
  /** Listens to the end of the connection. */
  on(event: 'close', listener: () => void): unknown
}

/** The parts of the server of a connection that are used here. */
export interface NodeServer {
  /** Ends all connections. A server of `node:http2` has no such method. */
  closeAllConnections?(): void
  /** Listens to new connections. */
  on(event: 'connection', listener: (connection: NodeConnection) => void): unknown
}

/** The parts of a `ServerResponse` or an `Http2ServerResponse` that the handler uses. */
export interface NodeResponse {
  statusCode: number
  /** Whether something else has answered. */
  readonly headersSent: boolean
  /** Sets a header of the answer. */
  setHeader(name: string, value: string): unknown
  /** Sends the answer, without a body. */
  end(): unknown
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
  prependListener(
    event: 'request',
    listener: (
      request: Pick<NodeRequest, 'httpVersionMajor'>,
      response: Pick<NodeResponse, 'headersSent' | 'setHeader'>,
    ) => void,
  ): unknown
}
