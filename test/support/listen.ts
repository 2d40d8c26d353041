/** Servers of Node.js on loopback. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import { createServer, type Server } from 'node:net'

/** Starts a server on a free port of 127.0.0.1, and resolves with the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP port')
  return address.port
}

/** Starts a server on a free port of 127.0.0.1; where it goes out of scope, it ends with all of its connections. */
export async function serving(server: Server) {
  const port = await listen(server)
  return {
    ...{ host: `127.0.0.1:${port}`, port },
    async [Symbol.asyncDispose](): Promise<void> {
      const closed = once(server, 'close')
      server.close()
      if (server instanceof HttpServer || server instanceof HttpsServer) server.closeAllConnections()
      await closed
    },
  }
}

/**
 * A free port of 127.0.0.1 for a program that is told where to listen. From below the ports that the system takes for
 * connections (32768 and up on Linux): one of those could take it before the program does.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 30_000)
    const server = createServer()
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    } catch {
      continue
    }
    server.close()
    await once(server, 'close')
    return port
  }
}

/** A port of 127.0.0.1 without a listener that is never assigned: `tcpmux`, which no system runs. */
export const refusingPort = 1
