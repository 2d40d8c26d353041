/** What a program in TypeScript does with the package, whatever its modules are; no setting may hide an error. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import {
  type CreateSubscriptionInput,
  NotificationClient,
  type NotificationClientOptions,
  NotificationError,
  SubscriptionConflictError,
} from 'notification-subscriber'
import * as emulatorDoor from 'notification-subscriber/emulator'
import { type Emulator, emulatorHandlers, startEmulator } from 'notification-subscriber/emulator'
import {
  ConfigurationError,
  DeliveryReceiver,
  parseDelivery,
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'

async function main(): Promise<void> {
  const emulator: Emulator = await startEmulator({ domain: 'acme' })
  const options: NotificationClientOptions = { ...emulator.clientOptions, timeoutMs: 10_000 }
  const client = new NotificationClient(options)

  const callIds: string[] = []
  const receiver = new DeliveryReceiver({ secrets: { token: 'of-this-program-alone' } }).on(
    'lowEnergyAgentOpened',
    ({ payload }) => callIds.push(payload.callId),
  )
  const server = createServer(emulator.tls, toNodeHandler(receiver)).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const input: CreateSubscriptionInput = {
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    parameters: { token: 'of-this-program-alone' },
  }
  const { subscriptionId } = await client.createSubscription(input)
  const payload = { callId: 'call-1', username: 'alice', bTime: 1, nTime: 2, idx: 3 }
  await emulator.notify({ type: 'lowEnergyAgentOpened', category: 'behavioral', username: 'alice', payload })
  assert.deepEqual(callIds, ['call-1'])

  const again = await client.tryCreateSubscription(input)
  assert(!again.created)
  const conflict: SubscriptionConflictError = again.conflict
  assert(conflict instanceof SubscriptionConflictError && conflict instanceof NotificationError)

  const body = {
    subscriptionId,
    notification: { id: 'n', time: 1, ver: '1', type: 'cxScoreUpdated', payload },
  }
  const { notification } = parseDelivery(JSON.stringify(body))
  if (notification.type === 'lowEnergyAgentOpened') {
    const idx: number = notification.payload.idx
    // @ts-expect-error: were the declarations lost, this would be any.
    const wrong: string = notification.payload.idx
    assert.fail(`${idx} ${wrong}`)
  }
  const handler: (request: Request) => Promise<Response> = toWebHandler(receiver)
  assert.equal(typeof handler, 'function')
  // @ts-expect-error: there is no such option.
  assert.throws(() => new NotificationClient({ ...options, timeout: 5 }), ConfigurationError)
  // @ts-expect-error: msw is not installed here, and nothing looks for it.
  assert.throws(() => emulatorHandlers(emulator), ConfigurationError)
  // @ts-expect-error: a type, whose values `startEmulator` makes.
  assert.throws(() => new emulatorDoor.Emulator(), TypeError)

  await client.unsubscribe(subscriptionId)
  server.close()
  await client.close()
  await emulator.close()
  console.log('The story is over')
}

void main()
