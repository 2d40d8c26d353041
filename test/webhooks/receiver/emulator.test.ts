import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { describe, expect, test, vi } from 'vitest'
import { deferred } from '../../support/deferred.js'
import { lowEnergyPayload } from '../deliveries.js'
import { secrets } from './support.js'

async function listenOverTls(emulator: Emulator, listener: RequestListener) {
  const server = createServer(emulator.tls, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/notifications`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function subscribe(emulator: Emulator, callbackUrl: string) {
  await using client = new NotificationClient(emulator.clientOptions)
  await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl,
    parameters: { token: 'current-secret' },
  })
}

type Sent = readonly [type: string, payload: Record<string, unknown>]

const notify = (emulator: Emulator, [type, payload]: Sent) =>
  emulator.notify({ type, payload, category: 'behavioral', username: 'alice' })

const known: Sent = ['lowEnergyAgentOpened', lowEnergyPayload()]

describe('ten deliveries in a row leave the subscription active (docs/service.md, States)', () => {
  const hung = deferred<void>()

  test.each<[string, () => unknown, Sent, 'onError' | 'onInvalid' | 'nothing']>([
    ['to a handler that always throws', () => Promise.reject(new Error('no')), known, 'onError'],
    ['to a handler that hangs', () => hung.promise, known, 'nothing'],
    ['of a payload that breaks the schema', () => {}, ['lowEnergyAgentOpened', { callId: 5 }], 'onInvalid'],
    ['of a type that nobody knows', () => {}, ['somethingNew', { a: 1 }], 'nothing'],
  ])('%s', async (_, handle, sent, reported) => {
    await using emulator = await startEmulator()
    const calls = { onError: vi.fn(), onInvalid: vi.fn() }
    const handler = vi.fn(handle)
    const receiver = new DeliveryReceiver({ secrets, ...calls, ackTimeoutMs: 20 }).onAny(handler)
    await using server = await listenOverTls(emulator, toNodeHandler(receiver))
    await subscribe(emulator, server.url)
    for (let round = 0; round < 10; round += 1) {
      expect(await notify(emulator, sent)).toMatchObject([{ status: 204, subscriptionEnded: false }])
    }
    expect(handler).toHaveBeenCalledTimes(reported === 'onInvalid' ? 0 : 10)
    expect(calls.onError).toHaveBeenCalledTimes(reported === 'onError' ? 10 : 0)
    expect(calls.onInvalid).toHaveBeenCalledTimes(reported === 'onInvalid' ? 10 : 0)
    hung.resolve()
    await receiver.drain()
  })
})

describe('three failures in a row end it', () => {
  test('of a bare route that answers 500', async () => {
    await using emulator = await startEmulator()
    await using server = await listenOverTls(emulator, (_, response) => void response.writeHead(500).end())
    await subscribe(emulator, server.url)
    for (const subscriptionEnded of [false, false, true]) {
      expect(await notify(emulator, known)).toMatchObject([{ status: 500, subscriptionEnded }])
    }
    expect(await notify(emulator, known)).toEqual([])
  })

  test('of a receiver that has another secret', async () => {
    await using emulator = await startEmulator()
    const receiver = new DeliveryReceiver({ secrets: { token: 'another' } }).onAny(() => expect.unreachable())
    await using server = await listenOverTls(emulator, toNodeHandler(receiver))
    await subscribe(emulator, server.url)
    for (const subscriptionEnded of [false, false, true]) {
      expect(await notify(emulator, known)).toMatchObject([{ status: 401, subscriptionEnded }])
    }
  })
})
