/** The service as far as it matters here: callbacks over connections that stay open, each sent once. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

export interface LoadOptions {
  readonly port: number
  readonly token: string
  readonly connections: number
  readonly ids: readonly string[]
  /** How long each connection waits between an answer and the next callback, in milliseconds. */
  readonly pauseMs: number
}

/** Sends a callback for each id, and resolves with the ids that were answered with 204. */
export async function sendLoad({
  port,
  token,
  connections,
  ids,
  pauseMs,
}: LoadOptions): Promise<Set<string>> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const answered = new Set<string>()
  const waiting = ids.values()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (const id of waiting) {
        // Refused: the receiver is starting, and has not seen the callback. Lost on the way: nobody sends it again.
        let outcome = await send(agent, port, token, id)
        while (outcome === 'refused') {
          await sleep(100)
          outcome = await send(agent, port, token, id)
        }
        if (outcome === 204) answered.add(id)
        await sleep(pauseMs)
      }
    }),
  )
  agent.destroy()
  return answered
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
