/**
 * Rotates the token of callbacks while they arrive. No callback is refused.
 *
 *     npm install notification-subscriber tsx
 *     npx tsx rotate-callback-token.mts
 */
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { NotificationClient } from 'notification-subscriber'
import { type EmulatedNotification, startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'

interface Rotation {
  readonly client: NotificationClient
  readonly subscriptionId: number
  readonly oldToken: string
  readonly newToken: string
  /** Deploys these tokens to every instance of the app. */
  readonly deploy: (...acceptedTokens: string[]) => void | Promise<void>
  /** Waits for callbacks that are in flight with the old token: in production a minute is plenty. */
  readonly settled: () => Promise<void>
}

async function rotateCallbackToken(rotation: Rotation): Promise<void> {
  const { client, subscriptionId, oldToken, newToken, deploy, settled } = rotation
  await deploy(newToken, oldToken)
  await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: newToken } })
  await settled()
  await deploy(newToken)
}

// The demonstration: an app whose route is replaced while it runs, and a subscription that sends the old token.
let handled = 0
function receiverAccepting(...tokens: string[]) {
  return new DeliveryReceiver({
    secrets: { token: tokens },
    onRefused: ({ reason }) => console.log(`Refused: ${reason}`),
  }).onAny(() => handled++)
}

const [oldToken, newToken] = [randomToken(), randomToken()]
let receiver = receiverAccepting(oldToken)
let route = toNodeHandler(receiver)
await using emulator = await startEmulator()
await using client = new NotificationClient(emulator.clientOptions)
const server = createServer(emulator.tls, (request, response) => route(request, response)).listen(
  0,
  '127.0.0.1',
)
await once(server, 'listening')
const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['call-score'],
  usernames: ['alice'],
  callbackUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}/notifications`,
  parameters: { token: oldToken },
})
const notification: EmulatedNotification = {
  type: 'cxScoreUpdated',
  category: 'call-score',
  username: 'alice',
  payload: { score: 4.2 },
}

// Deliveries arrive all the time, one after the other.
const deliveries = new EventEmitter<{ answered: [status: number | undefined] }>()
const statuses: (number | undefined)[] = []
deliveries.on('answered', (status) => statuses.push(status))
let hasEnded = false
const sending = (async () => {
  while (!hasEnded) {
    const [callback] = await emulator.notify(notification)
    deliveries.emit('answered', callback?.status)
  }
})()

await twoAnswers()
await rotateCallbackToken({
  client,
  subscriptionId,
  oldToken,
  newToken,
  deploy: async (...acceptedTokens) => {
    receiver = receiverAccepting(...acceptedTokens)
    route = toNodeHandler(receiver)
    await twoAnswers()
  },
  settled: twoAnswers,
})
hasEnded = true
await sending
console.log(`Notifications during the rotation: ${statuses.length} sent, ${handled} handled`)
console.log(`Refused during the rotation: ${statuses.filter((status) => status !== 204).length}`)

// From now on the old token is refused.
await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: oldToken } })
const [callback] = await emulator.notify(notification)
console.log(`The old token is answered with ${callback?.status}`)

await receiver.close(server, { timeoutMs: 10_000 })
console.log(
  'Next: copy rotateCallbackToken. A SubscriptionKeeper gives all its subscriptions the parameters of its options.',
)

/** Resolves when the delivery in flight and the next one are answered. */
async function twoAnswers(): Promise<void> {
  await once(deliveries, 'answered')
  await once(deliveries, 'answered')
}

function randomToken(): string {
  return randomBytes(24).toString('base64url')
}
