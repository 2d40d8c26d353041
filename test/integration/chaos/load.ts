/** The service as far as it matters here: callbacks over connections that stay open, each sent once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

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
  readonly #pool: Pool
  readonly #over: Promise<unknown>
  sent = 0
  #isStopped = false

  constructor(options: LoadOptions) {
    this.#options = options
    this.#pool = new Pool(`http://127.0.0.1:${options.port}`, { connections: options.connections })
    this.#over = Promise.all(Array.from({ length: options.connections }, () => this.#sendAll()))
  }

  /** Begins no more; resolves when what was begun is answered or lost. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#over
    await this.#pool.destroy()
  }

  async #sendAll(): Promise<void> {
    const { idPrefix, token, pauseMs } = this.#options
    while (!this.#isStopped) {
      const id = `${idPrefix}-${this.sent++}`
      // Refused: the receiver is starting, and has not seen the callback. Lost on the way: it is not sent again.
      let outcome = await send(this.#pool, token, id)
      while (outcome === 'refused') {
        await sleep(100)
        outcome = await send(this.#pool, token, id)
      }
      if (outcome === 204) this.answered.add(id)
      await sleep(pauseMs)
    }
  }
}

async function send(pool: Pool, token: string, id: string): Promise<number | 'refused' | 'lost'> {
  const notification = { id, time: Date.now(), ver: '1.0', type: 'cxScoreUpdated', payload: { score: 1 } }
  const body = JSON.stringify({ subscriptionId: 1, notification })
  const headers = { token, 'content-type': 'application/json' }
  try {
    const answer = await pool.request({ method: 'POST', path: '/', headers, body })
    await answer.body.dump()
    return answer.statusCode
  } catch (error) {
    return Object(error).code === 'ECONNREFUSED' ? 'refused' : 'lost'
  }
}
