import { createServer, type Server } from 'node:https'
import { text } from 'node:stream/consumers'
import { NotificationClient, parseDelivery } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listen } from '../support/listen.js'

let emulator: Emulator
let receiver: Server
let callbackUrl: string
const received: { headers: NodeJS.Dict<string | string[]>; body: string }[] = []

beforeEach(async () => {
  received.length = 0
  emulator = await startEmulator()
  receiver = createServer(emulator.tls, async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) })
    response.writeHead(204).end()
  })
  callbackUrl = `https://127.0.0.1:${await listen(receiver)}/notifications`
})
afterEach(async () => {
  await emulator.close()
  receiver.close()
  receiver.closeAllConnections()
})

const lowEnergy = {
  type: 'lowEnergyAgentOpened',
  category: 'behavioral',
  username: 'alice',
  payload: { callId: 'c', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
} as const

test('a token is obtained, a subscription created, and a notification arrives typed with its parameters as headers', async () => {
  await using client = new NotificationClient(emulator.clientOptions)
  const { subscriptionId } = await client.createSubscription({
    notificationTypes: ['behavioral', 'call-score'],
    usernames: ['alice', 'bob'],
    callbackUrl,
    parameters: { token: 'callback-token' },
    headers: { UserData: 'myData' },
  })
  const results = await emulator.notify(lowEnergy)
  expect(results).toMatchObject([{ subscriptionId, status: 204 }])

  expect(received).toHaveLength(1)
  expect(received[0]?.headers).toMatchObject({ token: 'callback-token', userdata: 'myData' })
  const delivery = parseDelivery(received[0]?.body)
  expect(delivery.subscriptionId).toBe(subscriptionId)
  if (delivery.notification.type !== 'lowEnergyAgentOpened') expect.fail(delivery.notification.type)
  expect(delivery.notification.payload).toEqual(lowEnergy.payload)
})
