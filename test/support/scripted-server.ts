/** A TLS server that does to each connection what a script says, down to single bytes and resets. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import { listen } from './listen.js'

/** What a script can do with a connection; it runs again and again until the connection is over. */
export type Script = (connection: Connection) => Promise<void> | void

/** How much of a request a script waits for. */
export type Part = 'first byte' | 'half of the body' | 'everything'

export class ScriptedServer implements AsyncDisposable {
  readonly origin: string
  /** How many requests arrived, at least their first byte. */
  seen = 0
  readonly #server: Server
  readonly #open = new Set<Socket>()

  private constructor(server: Server, port: number, script: Script, tls: KeyAndCertificate) {
    this.#server = server
    this.origin = `https://127.0.0.1:${port}`
    server.on('connection', (socket) => {
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
      void play(script, new Connection(socket, tls, () => this.seen++))
    })
  }

  static async listen(tls: KeyAndCertificate, script: Script): Promise<ScriptedServer> {
    const server = createServer()
    return new ScriptedServer(server, await listen(server), script, tls)
  }

  /** Resolves when no connection is open; a leaked one makes the test time out. */
  async idle(): Promise<void> {
    await Promise.all([...this.#open].map((socket) => once(socket, 'close')))
  }

  async refuse(): Promise<void> {
    this.#server.close()
    await once(this.#server, 'close')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    if (this.#server.listening) await this.refuse()
  }
}

async function play(script: Script, connection: Connection): Promise<void> {
  try {
    while (!connection.isOver) await script(connection)
  } catch {
    // The client went away in the middle of the script.
  }
}

class Connection {
  readonly #socket: Socket
  readonly #tls: KeyAndCertificate
  readonly #onRequest: () => void
  readonly #over: Promise<unknown>
  #secure: TLSSocket | undefined
  #received = ''
  #counted = false

  constructor(socket: Socket, tls: KeyAndCertificate, onRequest: () => void) {
    this.#socket = socket
    this.#tls = tls
    this.#onRequest = onRequest
    this.#over = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => {})
  }

  get isOver(): boolean {
    return this.#socket.destroyed
  }

  /** Does nothing until the client gives up. */
  async stall(): Promise<void> {
    // Who does not read does not see the end either.
    this.#secure?.resume() ?? this.#socket.resume()
    await this.#over
  }

  /** Waits for the next request, or the part of it, and returns what came, head and body. */
  async request(part: Part = 'everything'): Promise<string> {
    const stream = this.#startTls()
    while (received(this.#received, part) === undefined) {
      const [chunk] = await Promise.race([once(stream, 'data'), this.#gone()])
      if (!this.#counted) this.#onRequest()
      this.#counted = true
      this.#received += (chunk as Buffer).toString('latin1')
    }
    const request = this.#received
    if (part === 'everything') {
      this.#received = ''
      this.#counted = false
    }
    return request
  }

  /** Sends inside TLS, and resolves when it is on its way. */
  write(bytes: string | Uint8Array): Promise<void> {
    const stream = this.#startTls()
    return new Promise((resolve) => stream.write(bytes, () => resolve()))
  }

  /** Sends past TLS, to where the client expects its records. */
  writeRaw(bytes: string): Promise<void> {
    return new Promise((resolve) => this.#socket.write(bytes, () => resolve()))
  }

  /** Ends the connection in order, without waiting for the client to do the same. */
  async close(): Promise<void> {
    const stream = this.#secure ?? this.#socket
    await new Promise<void>((resolve) => stream.end(() => resolve()))
    this.#socket.destroy()
    await this.#over
  }

  /** Breaks the connection with an RST. */
  async reset(): Promise<void> {
    this.#socket.resetAndDestroy()
    await this.#over
  }

  #startTls(): TLSSocket {
    if (this.#secure === undefined) {
      this.#secure = new TLSSocket(this.#socket, { isServer: true, ...this.#tls })
      this.#secure.on('error', () => {})
    }
    return this.#secure
  }

  async #gone(): Promise<never> {
    await this.#over
    throw new Error('the client went away')
  }
}

/** What has arrived, once it is enough. */
function received(text: string, part: Part): string | undefined {
  if (part === 'first byte') return text === '' ? undefined : text
  const endOfHead = text.indexOf('\r\n\r\n')
  if (endOfHead === -1) return undefined
  const contentLength = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, endOfHead + 2))?.[1] ?? 0)
  const wanted = part === 'everything' ? contentLength : Math.floor(contentLength / 2)
  return text.length >= endOfHead + 4 + wanted ? text : undefined
}
