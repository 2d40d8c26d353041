/** Stops a server of Node.js so that no callback is lost. */
import type { CallbackServer, Http2Connection } from './node-types.js'

const checkMs = 25

/** A second without a new request. Counted, and not timed, so that a busy process reads what has arrived meanwhile. */
const quietChecks = 40

/**
 * Stops listening, asks each connection with its next answer to close, ends idle ones after a quiet second, and what is left
 * after `timeoutMs`: Node.js does not show on which connections nothing has arrived.
 *
 * @param sessions - the HTTP/2 connections that have brought callbacks
 * @param isBusy - whether a delivery is in flight
 */
export async function closeServer(
  server: CallbackServer,
  timeoutMs: number,
  sessions: ReadonlySet<Http2Connection>,
  isBusy: () => boolean,
): Promise<void> {
  const endAt = performance.now() + timeoutMs
  let checks = 0
  let isClosed = false
  const wait = () => new Promise((resolve) => setTimeout(resolve, checkMs))
  await wait()
  // Closing resets the connections that a busy process has not taken yet: at most 511, and Node.js takes one in a turn.
  let hasTaken = true
  server.prependListener('connection', () => {
    hasTaken = true
  })
  for (let turn = 0; hasTaken && turn < 511 && performance.now() < endAt; turn += 1) {
    hasTaken = false
    await new Promise((resolve) => setImmediate(resolve))
  }
  // Not earlier: a client would connect anew, and its connection would be reset.
  server.prependListener('request', ({ httpVersionMajor }, response) => {
    checks = 0
    // HTTP/2 has no such header.
    if (httpVersionMajor !== 2 && !response.headersSent) response.setHeader('connection', 'close')
  })
  // `close` of Node.js would end idle connections at once, while a callback may be on its way over one of them.
  Object.defineProperty(server, 'closeIdleConnections', { value: () => {}, configurable: true })
  server.close(() => {
    isClosed = true
  })
  Reflect.deleteProperty(server, 'closeIdleConnections')
  while (!isClosed && performance.now() < endAt) {
    await wait()
    checks += 1
    if (checks <= quietChecks || isBusy()) continue
    server.closeIdleConnections?.()
    for (const session of sessions) session.close()
  }
  server.closeAllConnections?.()
  for (const session of sessions) session.destroy()
}
