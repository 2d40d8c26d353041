/** The service as far as it matters here: callbacks over connections that stay open, each sent once. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

export interface LoadOptions {
  readonly port: number
  readonly token: string
  readonly connections: number
  /** Of each callback: this, a hyphen and a number. */
  readonly idPrefix: string
  /** How long each connection waits between an answer and the next callback, in milliseconds. */
  readonly pauseMs: number
}

/** Sends callbacks until it is stopped. */
export class Load {
  /** The ids of the callbacks that were answered with 204. */
  readonly answered = new Set<string>()
  readonly #options: LoadOptions
  readonly #agent: Agent
  readonly #over: Promise<unknown>
  #sent = 0
  #isStopped = false

  constructor(options: LoadOptions) {
    this.#options = options
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections })
    this.#over = Promise.all(Array.from({ length: options.connections }, () => this.#sendAll()))
  }

  /** How many callbacks were begun. */
  get sent(): number {
    return this.#sent
  }

  /** Begins no more; resolves when what was begun is answered or lost. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#over
    this.#agent.destroy()
  }

  async #sendAll(): Promise<void> {
    const { idPrefix, port, token, pauseMs } = this.#options
    while (!this.#isStopped) {
      const id = `${idPrefix}-${this.#sent++}`
      // Refused: the receiver is starting, and has not seen the callback. Lost on the way: it is not sent again.
      let outcome = await send(this.#agent, port, token, id)
      while (outcome === 'refused') {
        await sleep(100)
        outcome = await send(this.#agent, port, token, id)
      }
      if (outcome === 204) this.answered.add(id)
      await sleep(pauseMs)
    }
  }
}

function send(agent: Agent, port: number, token: string, id: string): Promise<number | 'refused' | 'lost'> {
  const notification = { id, time: Date.now(), ver: '1.0', type: 'cxScoreUpdated', payload: { score: 1 } }
  const body = JSON.stringify({ subscriptionId: 1, notification })
  return new Promise((resolve) => {
    const headers = { token, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const sent = request({ agent, port, host: '127.0.0.1', method: 'POST', headers })
    sent.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 'lost'))
      response.on('error', () => resolve('lost'))
    })
    sent.on('error', (error) => resolve(Object(error).code === 'ECONNREFUSED' ? 'refused' : 'lost'))
    sent.end(body)
  })
}
