/** Servers of Node.js on loopback. */
import { once } from 'node:events'
import type { Server } from 'node:net'
import type { RunningServer } from './subscribed.js'

/** Starts a server on a free port. */
export async function listen(server: Server, scheme: 'https' | 'http' = 'https'): Promise<RunningServer> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP port')
  return {
    origin: `${scheme}://127.0.0.1:${address.port}`,
    // It may be closed by the test itself: that is no error here.
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
