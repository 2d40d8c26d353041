/** Serves the service over HTTPS. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { Server, Socket } from 'node:net'
import { messageOf } from '../../shared/text.js'
import { configurationError } from '../../shared/validation.js'
import type { IncomingRequest } from '../service/service.js'
import type { KeyAndCertificate } from './certificate.js'

type Handler = (request: IncomingRequest) => Promise<Response>

export type HttpsServer = Awaited<ReturnType<typeof listenHttps>>

/** `baseUrl` has 127.0.0.1 if the server listens on all addresses. @throws `ConfigurationError` if it cannot listen */
export async function listenHttps({ key, cert }: KeyAndCertificate, host: string, port: number) {
  const server = createServer({ key, cert })
  const listening = await listen(server, host, port)
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host.replace('::1', '[::1]')
  return {
    baseUrl: `https://${reachable}:${listening.port}`,
    close: listening.close,
    /** Answers requests with what `handle` resolves with. If it rejects, the connection breaks. */
    answerWith(handle: Handler) {
      server.on('request', (incoming, outgoing) => {
        answer(handle, incoming, outgoing).catch(() => incoming.socket.destroy())
      })
    },
  }
}

/** @param option - the option that has the port, if it is no option of its own. @throws `ConfigurationError` */
export async function listen(server: Server, host: string, port: number, ...option: string[]) {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const issue =
      Object(cause).code === 'EADDRINUSE'
        ? { path: ['port'], message: `${port} of ${host} is taken: choose another, or 0 for any free one` }
        : { path: ['host'], message: `${host} cannot be listened on at port ${port}: ${messageOf(cause)}` }
    const issues = [{ ...issue, path: [...option, ...issue.path] }]
    throw configurationError('The emulator cannot start')(issues, { cause })
  }
  return {
    port: Number(Object(server.address()).port),
    async close() {
      const closed = once(server, 'close')
      server.close()
      // Not closeAllConnections(): it does not know of connections that are still in the TLS handshake.
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function answer(handle: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(incoming.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  const { method = '', url: target = '' } = incoming
  const body = incoming.iterator({ destroyOnReturn: false })
  await send(outgoing, await handle({ method, target, headers, body }))
}

export async function send(outgoing: ServerResponse, response: Response): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  outgoing.end(await response.text())
}
