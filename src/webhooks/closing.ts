/** Stops a server of Node.js so that no callback is lost. */
import type { CallbackServer, NodeConnection, NodeRequest } from './adapters/node-types.js'

/** Remembers the connections of servers that cannot end them: those of `node:http2` have no `closeAllConnections`. */
export class Connections {
  readonly #byServer = new WeakMap<object, Set<NodeConnection>>()

  /** Called with each request. From the first request on, new connections are remembered before they bring a request. */
  remember({ socket, stream }: NodeRequest): void {
    if (!socket?.server || socket.server.closeAllConnections) return
    const { server } = socket
    const known = this.#byServer.get(server)
    const connections = known ?? new Set()
    const add = (connection: NodeConnection) => {
      if (connections.has(connection)) return
      connections.add(connection)
      connection.on('close', () => connections.delete(connection))
    }
    if (known === undefined) {
      this.#byServer.set(server, connections)
      server.on('connection', add)
    }
    add(stream?.session ?? socket)
  }

  of(server: object): ReadonlySet<NodeConnection> {
    return this.#byServer.get(server) ?? new Set()
  }
}

/** Asks each connection with its next answer to close, ends idle ones after a quiet second, and all after `timeoutMs`. */
export async function closeServer(
  server: CallbackServer,
  timeoutMs: number,
  connections: ReadonlySet<NodeConnection>,
  isBusy: () => boolean,
): Promise<void> {
  const endsFrom = performance.now() + timeoutMs
  let isClosed = false
  let requestedSince = performance.now()
  server.prependListener('request', ({ httpVersionMajor }, response) => {
    requestedSince = performance.now()
    // HTTP/2 has no such header.
    if (httpVersionMajor !== 2 && !response.headersSent) response.setHeader('connection', 'close')
  })
  // `close` of Node.js would end idle connections at once, while a callback may be on its way over one of them.
  Object.defineProperty(server, 'closeIdleConnections', { value: () => {}, configurable: true })
  server.close(() => {
    isClosed = true
  })
  Reflect.deleteProperty(server, 'closeIdleConnections')
  while (!isClosed && performance.now() < endsFrom) {
    await new Promise((resolve) => setTimeout(resolve, 25))
    if (performance.now() < requestedSince + 1_000 || isBusy()) continue
    server.closeIdleConnections?.()
    for (const connection of connections) connection.close?.()
  }
  server.closeAllConnections?.()
  for (const connection of connections) connection.destroy()
}
