/** Stops a server of Node.js so that no callback is lost. */

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
      request: {
        /** The major version of HTTP. */
        readonly httpVersionMajor: number
      },
      response: {
        /** Whether something has answered. */
        readonly headersSent: boolean
        /** Sets a header of the answer. */
        setHeader(name: string, value: string): unknown
      },
    ) => void,
  ): unknown
}

const checkMs = 25

/**
 * After how many checks without a new request idle connections are ended: a second. Counted, and not timed, so that a busy process
 * reads what has arrived in the meantime.
 */
const quietChecks = 40

/**
 * Stops listening, asks each connection with its next answer to close, ends idle ones after a quiet second, and what is left
 * after `timeoutMs`.
 *
 * @param sessions - the HTTP/2 connections that have brought callbacks
 * @param isBusy - whether a delivery is in flight
 */
export async function closeServer(
  server: CallbackServer,
  timeoutMs: number,
  sessions: ReadonlySet<{ close(): unknown; destroy(): unknown }>,
  isBusy: () => boolean,
): Promise<void> {
  const startedAt = performance.now()
  let checks = 0
  let isClosed = false
  server.prependListener('request', ({ httpVersionMajor }, response) => {
    checks = 0
    // HTTP/2 has no such header.
    if (httpVersionMajor < 2 && !response.headersSent) response.setHeader('connection', 'close')
  })
  // `close` of Node.js would end idle connections at once, while a callback may be on its way over one of them.
  Object.defineProperty(server, 'closeIdleConnections', { value: () => {}, configurable: true })
  server.close(() => {
    isClosed = true
  })
  Reflect.deleteProperty(server, 'closeIdleConnections')
  while (!isClosed && performance.now() < startedAt + timeoutMs) {
    await new Promise((resolve) => setTimeout(resolve, checkMs))
    checks += 1
    if (checks <= quietChecks || isBusy()) continue
    server.closeIdleConnections?.()
    for (const session of sessions) session.close()
  }
  // Also connections on which nothing, or half a request, has arrived.
  server.closeAllConnections?.()
  for (const session of sessions) session.destroy()
}
