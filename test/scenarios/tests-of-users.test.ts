/** What docs/testing.md says of users' own tests. */
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { Agent, MockAgent, setGlobalDispatcher } from 'undici'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.js'
import { failureOf } from '../support/failure.js'
import { subscription } from '../support/fake-service.js'
import { createPath } from '../support/routes.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator()
})
afterEach(async () => {
  vi.useRealTimers()
  setGlobalDispatcher(new Agent())
  await emulator.close()
})

test('emulator.fetch is a fetch: of text, URL and Request, without its emulator, at every host', async () => {
  const { fetch, baseUrl } = emulator
  const address = 'https://notifications.example.com/nothing?x=1'
  for (const input of [address, new URL(address), new Request(address)]) {
    expect((await fetch(input, { method: 'PUT', body: 'x' })).status).toBe(404)
  }
  expect((await fetch(baseUrl + createPath)).status).toBe(405)
  expect(emulator.requests).toMatchObject([
    ...[1, 2, 3].map(() => ({ method: 'PUT', path: '/nothing?x=1', body: 'x' })),
    { method: 'GET', path: createPath },
  ])
  const reason = new Error('mine')
  await expect(fetch(address, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  await emulator.close()
  await expect(fetch(address)).rejects.toBeInstanceOf(TypeError)
  expect(emulator.requestCounts.unknown).toBe(4)
})

test('fake timers that advance let a call end, also one that is repeated', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true })
  emulator.injectFault('unsubscribe', { status: 503, headers: { 'retry-after': '8' } })
  const { clientOptions, fetch } = emulator
  const client = new NotificationClient({ ...clientOptions, dispatcher: undefined, fetch })
  const call = failureOf(client.unsubscribe(7))
  await eventually(() => expect(emulator.requestCounts.unsubscribe).toBe(1))
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await call).toMatchObject({ code: 'SUBSCRIPTION_NOT_FOUND' })
  expect(emulator.requestCounts.unsubscribe).toBe(2)
})

describe('jsdom in Jest, which has no TextDecoder', () => {
  // Loaded here and not in the test: see test/errors.test.ts.
  let loaded: object[]
  beforeAll(async () => {
    vi.stubGlobal('TextDecoder', undefined)
    vi.stubGlobal('TextEncoder', undefined)
    vi.resetModules()
    const { DeliveryReceiver } = await import('notification-subscriber/webhooks')
    loaded = [
      await import('notification-subscriber'),
      await import('notification-subscriber/keeper'),
      new DeliveryReceiver({ secrets: { token: 'a-secret-of-tests' } }),
    ]
    vi.unstubAllGlobals()
  })

  test('loads the package, so that it can be mocked, and makes a receiver', () => {
    expect(loaded).toMatchObject([
      { NotificationClient: expect.any(Function) },
      { SubscriptionKeeper: expect.any(Function) },
      { handle: expect.any(Function) },
    ])
  })
})

test('a global MockAgent of undici does not see the client', async () => {
  const global = new MockAgent()
  global.disableNetConnect()
  setGlobalDispatcher(global)
  const client = new NotificationClient(emulator.clientOptions)
  await client.createSubscription(subscription)
  expect(emulator.subscriptions).toHaveLength(1)
})
