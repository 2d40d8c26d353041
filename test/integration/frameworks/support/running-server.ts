import type { Server } from 'node:net'
import { listen } from '../../../support/listen.js'

export interface RunningServer {
  readonly origin: string
  /** Takes no more requests, and resolves when the last one is answered. */
  close(): Promise<unknown>
}

/** Starts a server on a free port of loopback. */
export async function startServer(
  server: Server,
  scheme: 'https' | 'http' = 'https',
): Promise<RunningServer> {
  const port = await listen(server)
  return {
    origin: `${scheme}://127.0.0.1:${port}`,
    // It may be closed by the test itself: that is no error here.
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
