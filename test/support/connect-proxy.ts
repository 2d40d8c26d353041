/** A forward proxy that makes tunnels (RFC 9110 section 9.3.6), and knows hosts that no DNS knows. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { listen } from './listen.js'

export interface ConnectProxyOptions {
  /** Where tunnels really lead, whatever host they were asked for. */
  readonly to: string
  /** Turns tunnels away with this status. */
  readonly refuseWith?: number | undefined
  /** Takes requests for tunnels, and answers none. */
  readonly silent?: boolean | undefined
}

export class ConnectProxy implements AsyncDisposable {
  /** Every tunnel that was asked for, with the headers that the proxy could read. */
  readonly requests: { readonly target: string; readonly headers: IncomingMessage['headers'] }[] = []
  readonly url: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server, port: number, { to, refuseWith, silent }: ConnectProxyOptions) {
    this.#server = server
    this.url = `http://127.0.0.1:${port}`
    server.on('connection', (socket) => this.#keep(socket))
    server.on('connect', ({ url = '', headers }: IncomingMessage, socket: Socket) => {
      this.requests.push({ target: url, headers })
      if (silent) return
      if (refuseWith !== undefined) return void socket.end(`HTTP/1.1 ${refuseWith} No\r\n\r\n`)
      const upstream = connect(Number(new URL(to).port), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        upstream.pipe(socket).pipe(upstream)
      })
      this.#keep(upstream)
    })
  }

  static async listen(options: ConnectProxyOptions): Promise<ConnectProxy> {
    const server = createServer()
    return new ConnectProxy(server, await listen(server), options)
  }

  /** Resolves when no connection is open; a leaked one makes the test time out. */
  async idle(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => once(socket, 'close')))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
  }
}
