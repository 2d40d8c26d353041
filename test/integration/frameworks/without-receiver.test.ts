/** The routes of docs/receiver.md, Without a receiver: validation in a route of one's own. */
import { createServer } from 'node:http'
import express from 'express'
import { InvalidDeliveryError, sampleDelivery, verifySecrets } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { runBlock } from './support/page-blocks.js'
import { startServer } from './support/running-server.js'

/** The first block of the page, which the routes share: `accept` and `secrets`. */
async function sharedBlock(): Promise<Record<string, unknown>> {
  vi.stubEnv('CALLBACK_TOKEN', 'right')
  const exported = await runBlock('Without a receiver')
  vi.unstubAllEnvs()
  return exported
}

/** What the routes print: users of notifications, and errors. */
let printed: unknown[]
beforeEach(() => {
  printed = []
  vi.spyOn(console, 'log').mockImplementation((...values) => void printed.push(values.at(-1)))
  vi.spyOn(console, 'error').mockImplementation((error) => void printed.push(error))
})
afterEach(() => {
  vi.restoreAllMocks()
})

type Send = (body: string, headers: Record<string, string>) => Promise<number>

const routes: [name: string, start: () => Promise<{ send: Send; close(): Promise<unknown> }>][] = [
  [
    'Express',
    async () => {
      const shared = await sharedBlock()
      const accept = shared.accept as (body: unknown) => Promise<void>
      const secrets = shared.secrets as { token: string }
      const app = express()
      app.post(
        '/notifications',
        express.raw({ type: () => true, limit: '1mb' }),
        async (request, response) => {
          const isOurs = verifySecrets(request.headers, secrets)
          if (isOurs) await accept(request.body)
          response.status(isOurs ? 204 : 401).end()
        },
      )
      app.use(express.json())
      const { origin, close } = await startServer(createServer(app), 'http')
      return { send: sendTo(origin), close }
    },
  ],
  [
    'a Request handler',
    async () => {
      const { POST } = await runBlock('Without a receiver (2)', await sharedBlock())
      const handle = POST as (request: Request) => Promise<Response>
      return {
        async send(body, headers) {
          const init = { method: 'POST', headers, body }
          return (await handle(new Request('https://app.example.com', init))).status
        },
        close: async () => {},
      }
    },
  ],
]

const sendTo =
  (origin: string): Send =>
  async (body, headers) => {
    const init = { method: 'POST', headers: { connection: 'close', ...headers }, body }
    return (await fetch(`${origin}/notifications`, init)).status
  }

describe.each(routes)('the route of %s on the page, without a receiver', (_name, start) => {
  const { delivery, headers } = sampleDelivery('lowEnergyAgentOpened', { headers: { token: 'right' } })
  const body = JSON.stringify(delivery)

  test.each<[string, string, Record<string, string>, 'handled' | 'an error']>([
    ['a delivery', body, headers, 'handled'],
    ['a body of 900 kB', body.padEnd(900_000), headers, 'handled'],
    ['another content type', body, { ...headers, 'content-type': 'text/csv' }, 'handled'],
    [
      'a charset that there is not',
      body,
      { ...headers, 'content-type': 'application/json; charset=x' },
      'handled',
    ],
    ['malformed JSON', body.slice(1), headers, 'an error'],
    ['an empty body', '', headers, 'an error'],
  ])('answers %s with 204', async (_what, sent, withHeaders, expected) => {
    const { send, close } = await start()
    expect(await send(sent, withHeaders)).toBe(204)
    const { username } = delivery.notification.payload
    expect(printed).toEqual([expected === 'an error' ? expect.any(InvalidDeliveryError) : username])
    await close()
  })

  test('answers a stranger with 401', async () => {
    const { send, close } = await start()
    expect(await send(body, { token: 'wrong' })).toBe(401)
    expect(await send(body, {})).toBe(401)
    expect(printed).toEqual([])
    await close()
  })
})
