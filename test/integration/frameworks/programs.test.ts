/** Programs of docs/receiver.md: its first one, and routes of one's own (docs/receiver.md, Without a receiver). */
import { createServer, type RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import {
  InvalidDeliveryError,
  safeParseDelivery,
  sampleDelivery,
  verifySecrets,
} from 'notification-subscriber/webhooks'
import { expect, onTestFinished, test, vi } from 'vitest'
import { listeners, runBlock } from './support/page-blocks.js'
import { startServer } from './support/running-server.js'

const routes: [name: string, make: () => Promise<RequestListener>][] = [
  [
    'Express',
    async () =>
      express()
        .post(
          '/notifications',
          express.raw({ type: () => true, limit: '1mb' }),
          ({ headers, body }, response) => {
            const isOurs = verifySecrets(headers, { token: 'right' })
            const { data, error } = isOurs ? safeParseDelivery(body) : {}
            if (isOurs) console.log(error ?? data?.notification.payload)
            response.status(isOurs ? 204 : 401).end()
          },
        )
        .use(express.json()),
  ],
  [
    'a Request handler',
    async () => {
      const { POST } = await runBlock('Without a receiver')
      return getRequestListener(POST as (request: Request) => Promise<Response>)
    },
  ],
]

test('the first program prints a notification, and refuses a stranger', async () => {
  vi.stubEnv('CALLBACK_TOKEN', 'a-secret-of-this-test')
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  await runBlock('Receiving callbacks')
  const server = await startServer(createServer(listeners.pop()), 'http')
  onTestFinished(async () => {
    vi.restoreAllMocks()
    vi.unstubAllEnvs()
    await server.close()
  })
  const { body, headers, delivery } = sampleDelivery('lowEnergyAgentOpened', {
    headers: { token: 'a-secret-of-this-test', 'x-tenant': 'acme', connection: 'close' },
  })
  const send = (token = headers.token ?? '') =>
    fetch(server.origin, { method: 'POST', headers: { ...headers, token }, body })
  expect((await send('of-someone-else')).status).toBe(401)
  expect((await send()).status).toBe(204)
  const { username, callId } = delivery.notification.payload
  expect(log.mock.calls).toEqual([
    [username, callId],
    ['lowEnergyAgentOpened', 1, 'acme'],
  ])
})

test.each(routes)(
  'the route of %s, without a receiver, takes every body, and no stranger',
  async (_, make) => {
    vi.stubEnv('CALLBACK_TOKEN', 'right')
    const { origin, close } = await startServer(createServer(await make()), 'http')
    // What the routes print: payloads and errors.
    const printed: unknown[] = []
    vi.spyOn(console, 'log').mockImplementation((...values) => void printed.push(values.at(-1)))
    vi.spyOn(console, 'error').mockImplementation((error) => void printed.push(error))
    onTestFinished(async () => {
      vi.restoreAllMocks()
      vi.unstubAllEnvs()
      await close()
    })
    const { body, headers } = sampleDelivery('lowEnergyAgentOpened', { headers: { token: 'right' } })
    const statusOf = async (sent: string, changed: Record<string, string> = {}) => {
      const init = { method: 'POST', headers: { connection: 'close', ...headers, ...changed }, body: sent }
      return (await fetch(`${origin}/notifications`, init)).status
    }

    expect(await statusOf(body, { token: 'wrong' })).toBe(401)
    expect(printed).toEqual([])
    expect(await statusOf(body.padEnd(900_000))).toBe(204)
    expect(await statusOf(body, { 'content-type': 'text/csv' })).toBe(204)
    expect(await statusOf(body, { 'content-type': 'application/json; charset=x' })).toBe(204)
    expect(await statusOf(body.slice(1))).toBe(204)
    expect(await statusOf('')).toBe(204)
    const invalid = expect.any(InvalidDeliveryError)
    expect(printed).toEqual([
      ...Array(3).fill(expect.objectContaining({ username: 'alice' })),
      invalid,
      invalid,
    ])
  },
)
