/** A proxy for plain HTTP between a browser and a server, whose connections can be cut: a wire that is pulled out. */
import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import { listen } from '../../support/listen.js'

export class CuttableProxy implements AsyncDisposable {
  readonly url: string
  readonly #server: Server
  #isCut = false

  private constructor(server: Server, port: number) {
    this.#server = server
    this.url = `http://127.0.0.1:${port}`
    server.on('connection', (socket) => {
      if (this.#isCut) socket.destroy()
    })
    server.on('request', ({ url = '', method, headers }, response) => {
      const forwarded = request(url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      forwarded.on('error', () => response.destroy())
      response.on('close', () => forwarded.destroy())
      forwarded.end()
    })
  }

  static async listen(): Promise<CuttableProxy> {
    const server = createServer()
    return new CuttableProxy(server, await listen(server))
  }

  /** Breaks every connection, and each new one until {@link mend}. */
  cut(): void {
    this.#isCut = true
    this.#server.closeAllConnections()
  }

  mend(): void {
    this.#isCut = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.cut()
    await once(this.#server, 'close')
  }
}
