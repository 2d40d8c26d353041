/** Programs of docs/receiver.md: its first one, and a route of one's own (docs/receiver.md, Without a receiver). */
import { createServer, type RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { InvalidDeliveryError, sampleDelivery } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { serving } from '../../support/listen.js'
import { listeners, runBlock } from './support/page-blocks.js'

const token = 'a-secret-of-this-test'
const { body, headers, delivery } = sampleDelivery('lowEnergyAgentOpened', {
  headers: { token, 'x-tenant': 'acme', connection: 'close' },
})

/** What the programs print. */
let printed: unknown[][]
beforeEach(() => {
  printed = []
  vi.stubEnv('CALLBACK_TOKEN', token)
  for (const method of ['log', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((...values) => void printed.push(values))
  }
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

/** A server of the program; resolves with the status of what it is sent. */
async function serve(listener: RequestListener | undefined) {
  const { host, ...server } = await serving(createServer(listener))
  return {
    ...server,
    async post(sent: string, changed: Record<string, string> = {}): Promise<number> {
      const init = { method: 'POST', headers: { ...headers, ...changed }, body: sent }
      return (await fetch(`http://${host}/notifications`, init)).status
    },
  }
}

test('the first program prints a notification, and refuses a stranger', async () => {
  await runBlock('Receiving callbacks')
  await using server = await serve(listeners.pop())
  expect(await server.post(body, { token: 'of-someone-else' })).toBe(401)
  printed = []
  expect(await server.post(body)).toBe(204)
  const { username, callId } = delivery.notification.payload
  expect(printed).toEqual([
    [username, callId],
    ['lowEnergyAgentOpened', 1, 'acme'],
  ])
})

test('the route without a receiver takes every body, and no stranger', async () => {
  const { POST } = await runBlock('Without a receiver')
  await using server = await serve(getRequestListener(POST as (request: Request) => Promise<Response>))
  expect(await server.post(body, { token: 'wrong' })).toBe(401)
  expect(printed).toEqual([])
  const others = [{ 'content-type': 'text/csv' }, { 'content-type': 'application/json; charset=x' }]
  for (const changed of [{}, ...others]) expect(await server.post(body.padEnd(900_000), changed)).toBe(204)
  for (const broken of [body.slice(1), '']) expect(await server.post(broken)).toBe(204)
  const [payload, invalid] = [
    expect.objectContaining({ username: 'alice' }),
    expect.any(InvalidDeliveryError),
  ]
  expect(printed.map((values) => values.at(-1))).toEqual([payload, payload, payload, invalid, invalid])
})
