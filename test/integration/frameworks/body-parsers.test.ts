/**
 * Bodies that the parser of a framework would answer by itself, with 400, 413 or 415, each of which counts as a failed
 * delivery: the recipes of docs/receiver.md put the route before the parser.
 */
import { request as httpsRequest } from 'node:https'
import { startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import type { StartServer } from './support/expect-delivery.js'
import { lowEnergy } from './support/notifications.js'
import { pageServers } from './support/page-servers.js'
import { callbackToken } from './support/subscribed.js'

const { category: _category, username: _username, ...notification } = lowEnergy
const delivery = JSON.stringify({ subscriptionId: 1, notification })

const recipes: [name: string, start: StartServer][] = [
  ['Express 5', pageServers.express],
  ['Express 4', pageServers.express4],
  ['Fastify', pageServers.fastify],
  ['NestJS 11', pageServers.nest11],
  ['NestJS 12', pageServers.nest12],
  ['Koa', pageServers.koa],
  ['hapi', pageServers.hapi],
]

describe.each(recipes)('%s, as on the page', (_name, start) => {
  test.each<[string, string, Record<string, string>, 'handled' | 'invalid']>([
    ['a body of 900 kB', delivery.padEnd(900_000), { 'content-type': 'application/json' }, 'handled'],
    ['malformed JSON', delivery.slice(1), { 'content-type': 'application/json' }, 'invalid'],
    ['an empty body', '', { 'content-type': 'application/json' }, 'invalid'],
    ['a wrong charset', delivery, { 'content-type': 'application/json; charset=utf-99' }, 'handled'],
    ['no content type', delivery, {}, 'handled'],
  ])('answers %s with 204', async (_what, body, headers, expected) => {
    const seen: string[] = []
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      onInvalid: ({ bodyText }) => seen.push(bodyText === body ? 'invalid' : 'another body'),
    }).onAny(() => seen.push('handled'))
    await using server = await startRecipe(start, receiver)
    expect(await server.post(body, { ...headers, token: callbackToken })).toBe(204)
    expect(seen).toEqual([expected])
  })

  test('leaves the limit to the receiver', async () => {
    const refused: number[] = []
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      maxBodyBytes: 1_000,
      onRefused: ({ status }) => refused.push(status),
    }).onAny(() => expect.unreachable())
    await using server = await startRecipe(start, receiver)
    expect(await server.post(delivery.padEnd(1_001), { token: callbackToken })).toBe(413)
    expect(refused).toEqual([413])
  })
})

/** Starts a server, and sends it what the emulator never would. */
async function startRecipe(start: StartServer, receiver: DeliveryReceiver) {
  const emulator = await startEmulator()
  const { origin, close } = await start(receiver, emulator.tls)
  return {
    post: (body: string, headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const { ca } = emulator
        const request = httpsRequest(`${origin}/notifications`, { method: 'POST', headers, ca, agent: false })
        request.on('response', (response) => {
          response.resume()
          resolve(response.statusCode)
        })
        request.on('error', reject)
        request.setHeader('content-length', Buffer.byteLength(body))
        request.end(body)
      }),
    async [Symbol.asyncDispose]() {
      await emulator.close()
      await close()
    },
  }
}
