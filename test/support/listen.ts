/** Servers of Node.js on loopback. */
import { once } from 'node:events'
import type { Server } from 'node:net'

/** Starts a server on a free port of 127.0.0.1, and resolves with the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP port')
  return address.port
}
