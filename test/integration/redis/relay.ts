/** A TCP relay between one process and a server, so that the network of that process alone can fail. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { listen } from '../../support/listen.js'

/** One connection, and what of it is on its way. */
interface Link {
  /** From the process to the server. */
  held: (() => void)[] | undefined
  /** From the server to the process. */
  heldAnswers: (() => void)[] | undefined
}

export interface RelayOptions {
  readonly port: number
  /** How much later answers arrive, in milliseconds. Default: 0. */
  readonly answerDelayMs?: number | undefined
}

/**
 * - `cut()`: connections break, and new ones are refused.
 * - `hold()`: what the process sends on its present connections stays on its way, also when the process has died.
 * - `holdAnswers()`: what the server sends on the present connections stays on its way, until they break.
 * - `mend()`: all that was held arrives, and connections are taken again.
 * - `target`: another server for new connections.
 */
export class Relay implements AsyncDisposable {
  readonly port: number
  target: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #links = new Set<Link>()
  #isCut = false

  private constructor(server: Server, port: number, target: number) {
    this.#server = server
    this.port = port
    this.target = target
  }

  static async start(options: RelayOptions): Promise<Relay> {
    const server = createServer()
    const relay = new Relay(server, await listen(server), options.port)
    server.on('connection', (client) => relay.#accept(client, options))
    return relay
  }

  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  hold(): void {
    for (const link of this.#links) link.held ??= []
  }

  holdAnswers(): void {
    for (const link of this.#links) link.heldAnswers ??= []
  }

  mend(): void {
    this.#isCut = false
    for (const link of this.#links) {
      const held = [...(link.held ?? []), ...(link.heldAnswers ?? [])]
      link.held = undefined
      link.heldAnswers = undefined
      for (const pass of held) pass()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket, { answerDelayMs = 0 }: RelayOptions): void {
    if (this.#isCut) return void client.destroy()
    const server = connect(this.target, '127.0.0.1')
    const link: Link = { held: undefined, heldAnswers: undefined }
    this.#links.add(link)
    const pass = (piece: () => void) => {
      if (link.held === undefined) piece()
      else link.held.push(piece)
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    }
    client.on('data', (data) => pass(() => server.write(data)))
    server.on('data', (data) => {
      if (link.heldAnswers !== undefined) link.heldAnswers.push(() => client.write(data))
      // Two delays of the same length end in the order in which they began.
      else if (answerDelayMs > 0) setTimeout(() => client.write(data), answerDelayMs)
      else client.write(data)
    })
    // What was sent before the end arrives, and has its effect.
    client.on('close', () => pass(() => void setTimeout(() => server.destroy(), endMs)))
    server.on('close', () => {
      this.#links.delete(link)
      client.destroy()
    })
  }
}

/** The end of a process is not heard of at once: what it asked for is carried out. */
const endMs = 5_000
