/** Any request handler behind real TLS on loopback. */
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import { listen } from '../support/listen.js'

export interface HttpsServer extends AsyncDisposable {
  readonly origin: string
}

/** @param handlerFor - makes the handler once the origin is known: an OAuth issuer is named after its address */
export async function startHttps(
  tls: KeyAndCertificate,
  handlerFor: (origin: string) => RequestListener | Promise<RequestListener>,
): Promise<HttpsServer> {
  const server = createServer({ ...tls })
  const origin = `https://127.0.0.1:${await listen(server)}`
  server.on('request', await handlerFor(origin))
  return {
    origin,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
