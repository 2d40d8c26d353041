/** Servers of Node.js on loopback. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Starts a server on a free port of 127.0.0.1, and resolves with the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP port')
  return address.port
}

/** A port of 127.0.0.1 where nobody listens. Somebody else may take it before it is used. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return port
}
