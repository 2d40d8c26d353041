/**
 * Bodies that the parser of a framework would answer by itself, with 400, 413 or 415, each of which counts as a failed
 * delivery: the recipes of docs/receiver.md put the route before the parser.
 */
import { request as httpsRequest } from 'node:https'
import { startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { expect, test } from 'vitest'
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

const json = { 'content-type': 'application/json' }
const unknownCharset = { 'content-type': 'application/json; charset=utf-99' }

test.each(recipes)('%s, as on the page, leaves bodies and limit to the receiver', async (_name, start) => {
  const seen: string[] = []
  let sent = ''
  const receiver = new DeliveryReceiver({
    secrets: { token: callbackToken },
    onInvalid: ({ bodyText }) => seen.push(bodyText === sent ? 'invalid' : 'another body'),
    onRefused: ({ status }) => seen.push(`refused with ${status}`),
  }).onAny(() => seen.push('handled'))
  await using server = await startRecipe(start, receiver)
  for (const [body, headers, status, expected] of [
    [delivery.padEnd(900_000), json, 204, 'handled'],
    [delivery.slice(1), json, 204, 'invalid'],
    ['', json, 204, 'invalid'],
    [delivery, unknownCharset, 204, 'handled'],
    [delivery, {}, 204, 'handled'],
    [delivery.padEnd(2 ** 20 + 1), json, 413, 'refused with 413'],
  ] as const) {
    sent = body
    expect(await server.post(body, { ...headers, token: callbackToken })).toBe(status)
    expect(seen.splice(0)).toEqual([expected])
  }
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
