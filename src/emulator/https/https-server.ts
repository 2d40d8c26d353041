/** Serves a web-standard request handler over HTTPS. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { isIPv6, type Server as NetServer, type Socket } from 'node:net'
import { ConfigurationError } from '../../errors.js'
import { readUpTo } from '../../shared/bounded-bytes.js'
import { messageOf } from '../../shared/text.js'
import { formatIssues } from '../../shared/validation.js'
import { ConnectionReset } from '../faults.js'
import { maxBodyBytes } from '../service/service.js'
import type { KeyAndCertificate } from './certificate.js'

/** `method` is that of the request, which a `Request` cannot always have: TRACE. */
type Handler = (request: Request, method: string) => Promise<Response>

export class HttpsServer {
  /** `https://<host>:<port>`, with 127.0.0.1 if it listens on all addresses. */
  readonly baseUrl: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server, host: string, port: number) {
    this.#server = server
    this.baseUrl = `https://${reachableHost(host)}:${port}`
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /**
   * Starts a server.
   *
   * @throws `ConfigurationError` if host or port cannot be listened on
   */
  static async listen(tls: KeyAndCertificate, host: string, port: number): Promise<HttpsServer> {
    const server = createServer({ key: tls.key, cert: tls.cert })
    return new HttpsServer(server, host, await listen(server, host, port))
  }

  /** Answers requests with what `handle` resolves with; a `ConnectionReset` breaks the connection. */
  answerWith(handle: Handler): void {
    this.#server.on('request', (incoming, outgoing) => {
      answer(this.baseUrl, handle, incoming, outgoing).catch(() => incoming.socket.destroy())
    })
  }

  /** Stops listening and closes every connection, also those with a request in flight. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    // Not closeAllConnections(): it does not know of connections that are still in the TLS handshake.
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return isIPv6(host) ? `[${host}]` : host
}

/**
 * Resolves with the port.
 *
 * @param option - the option, if host and port are below one
 * @throws `ConfigurationError` if host or port cannot be listened on
 */
export async function listen(
  server: NetServer,
  host: string,
  port: number,
  ...option: string[]
): Promise<number> {
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const issue =
      Object(cause).code === 'EADDRINUSE'
        ? { path: ['port'], message: `${port} of ${host} is taken: choose another, or 0 for any free one` }
        : { path: ['host'], message: `${host} cannot be listened on at port ${port}: ${messageOf(cause)}` }
    const issues = [{ ...issue, path: [...option, ...issue.path] }]
    throw new ConfigurationError(`The emulator cannot start: ${formatIssues(issues)}.`, { issues }, { cause })
  }
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : port
}

async function answer(
  baseUrl: string,
  handle: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const request = await toRequest(baseUrl, incoming)
  if (request === undefined) {
    outgoing.writeHead(400).end()
    return
  }
  try {
    const response = await handle(request, incoming.method ?? 'GET')
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  } catch (error) {
    if (error instanceof ConnectionReset) incoming.socket.destroy()
    else outgoing.writeHead(500).end()
  }
}

/** The request as a web-standard one: nothing for a target that is no path. */
async function toRequest(baseUrl: string, incoming: IncomingMessage): Promise<Request | undefined> {
  const { method = 'GET', url = '/' } = incoming
  // One byte more than the limit, by which the handler sees that the body is too long.
  const { bytes: body } = await readUpTo(maxBodyBytes + 1, incoming.iterator({ destroyOnReturn: false }))
  const headers = new Headers()
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i] ?? '', incoming.rawHeaders[i + 1] ?? '')
  }
  try {
    return new Request(baseUrl + url, {
      method: method === 'TRACE' ? 'GET' : method,
      headers,
      body: ['GET', 'HEAD', 'TRACE'].includes(method) ? null : body,
    })
  } catch {
    return undefined
  }
}
