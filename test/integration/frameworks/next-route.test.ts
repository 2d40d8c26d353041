/** The contract of a Next.js route handler, without Next.js: `npm run test:package` runs the same block in it. */
import { createServer } from 'node:https'
import { getRequestListener } from '@hono/node-server'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { brokenPayload, lowEnergy } from './support/notifications.js'
import { runBlock } from './support/page-blocks.js'
import { startServer } from './support/running-server.js'
import { callbackToken, subscribe } from './support/subscribed.js'

// The module reads its configuration when it is loaded, as in Next.js.
vi.stubEnv('CALLBACK_TOKEN', callbackToken)
const route = await runBlock('Next.js')
vi.unstubAllEnvs()

const log = vi.spyOn(console, 'log').mockImplementation(() => {})
const error = vi.spyOn(console, 'error').mockImplementation(() => {})
beforeEach(() => {
  log.mockClear()
  error.mockClear()
})

describe('a route handler of Next.js', () => {
  test('exports the one method that callbacks use', () => {
    expect(Object.keys(route)).toEqual(['POST'])
  })

  test('hands a notification to the handler, reports a broken one, refuses a stranger', async () => {
    await using subscribed = await subscribe((tls) =>
      startServer(
        createServer(tls, getRequestListener(route.POST as (request: Request) => Promise<Response>)),
      ),
    )
    const { emulator } = subscribed

    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 204 }])
    expect(log).toHaveBeenCalledExactlyOnceWith(`alice on call ${lowEnergy.payload.callId}`)
    expect(await emulator.notify(brokenPayload)).toMatchObject([{ status: 204 }])
    expect(error).toHaveBeenCalledOnce()
    await subscribed.sendToken('of-someone-else')
    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 401 }])
    expect(log).toHaveBeenCalledOnce()
  })
})
