/** What a program in TypeScript does with the package, whatever its modules are; no setting may hide an error. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import {
  type CreateSubscriptionInput,
  NotificationClient,
  type NotificationClientOptions,
  NotificationError,
  SubscriptionConflictError,
} from 'notification-subscriber'
import * as emulatorDoor from 'notification-subscriber/emulator'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import {
  ConfigurationError,
  DeliveryReceiver,
  parseDelivery,
  sampleDelivery,
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'

async function main(): Promise<void> {
  const emulator: Emulator = await startEmulator({ domain: 'acme' })
  const options: NotificationClientOptions = { ...emulator.clientOptions, timeoutMs: 10_000 }
  const client = new NotificationClient(options)
  const input: CreateSubscriptionInput = {
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl: 'https://app.example.com/',
  }
  const { subscriptionId } = await client.createSubscription(input)
  const again = await client.tryCreateSubscription(input)
  assert(!again.created)
  const conflict: SubscriptionConflictError = again.conflict
  assert(conflict instanceof SubscriptionConflictError && conflict instanceof NotificationError)

  const callIds: string[] = []
  const receiver = new DeliveryReceiver({ allowUnauthenticated: true }).on(
    'lowEnergyAgentOpened',
    ({ payload }) => callIds.push(payload.callId),
  )
  const listener: RequestListener = toNodeHandler(receiver)
  createServer(listener).close()
  const handler: (request: Request) => Promise<Response> = toWebHandler(receiver)
  const { body } = sampleDelivery('lowEnergyAgentOpened', { subscriptionId })
  assert.equal((await handler(new Request(input.callbackUrl, { method: 'POST', body }))).status, 204)
  const { notification } = parseDelivery(body)
  assert(notification.type === 'lowEnergyAgentOpened')
  assert.deepEqual(callIds, [notification.payload.callId])
  const idx: number = notification.payload.idx
  // @ts-expect-error: were the declarations lost, this would be any.
  const wrong: string = notification.payload.idx
  assert.equal(idx, wrong)

  // @ts-expect-error: there is no such option.
  assert.throws(() => new NotificationClient({ ...options, timeout: 5 }), ConfigurationError)
  // @ts-expect-error: a type, whose values `startEmulator` makes.
  assert.throws(() => new emulatorDoor.Emulator(), TypeError)

  await client.close()
  await emulator.close()
  console.log('The story is over')
}

void main()
