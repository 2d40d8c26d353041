/**
 * The whole story in one script, on the emulator: token, subscription, notification, conflict, unsubscribe.
 * It needs no account and no network.
 *
 *     npm install ./notification-subscriber-*.tgz tsx
 *     npx tsx quickstart.mts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import {
  DeliveryReceiver,
  NotificationClient,
  SubscriptionConflictError,
  toNodeHandler,
} from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'

// The notification service, in this process: real HTTPS, real signed tokens, real callbacks.
const emulator = await startEmulator()
say('The service', `listens at ${emulator.baseUrl} (emulated)`)

// 1. A client. In production: the service's addresses, and the credentials that were issued to you.
const client = new NotificationClient(emulator.clientOptions)
const accessToken = await client.getAccessToken()
sayWhatWasSent()
say('Access token', `${accessToken.slice(0, 20)}… (a JWT; the client keeps it and refreshes it)`)

// 2. A receiver. Callbacks carry no signature: our secret, which comes back as a header, proves the sender.
const callbackToken = randomBytes(24).toString('base64url')
const receiver = new DeliveryReceiver({ secrets: { token: callbackToken } })
  .on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
    // Typed by the notification's type: `callId` is a string, `idx` a number.
    say(
      'Received',
      `subscription ${subscriptionId}: ${payload.username} has low energy on call ${payload.callId}`,
    )
  })
  .on('cxScoreUpdated', ({ payload }, { subscriptionId }) => {
    // The payload of this type is not documented: a plain record, kept unchanged.
    say('Received', `subscription ${subscriptionId}: new score ${JSON.stringify(payload)}`)
  })
const server = createServer(emulator.tls, toNodeHandler(receiver)).listen(0, '127.0.0.1')
await once(server, 'listening')
const callbackUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}/notifications`
say('Our receiver', `listens at ${callbackUrl} and wants the header "token: ${callbackToken}"`)

// 3. A subscription to two types of notifications of two users.
const subscription = {
  notificationTypes: ['behavioral', 'call-score'],
  usernames: ['alice', 'bob'],
  callbackUrl,
  parameters: { token: callbackToken },
} as const
const { subscriptionId } = await client.createSubscription(subscription)
sayWhatWasSent()
say('Subscription', `${subscriptionId} is active`)

// 4. Events on two live calls: the service sends notifications.
const [lowEnergy] = await emulator.notify({
  type: 'lowEnergyAgentOpened',
  category: 'behavioral',
  username: 'alice',
  payload: { callId: 'call-1', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
})
say('Callback', `answered ${lowEnergy?.status}: its header "token" was the right one`)
const [score] = await emulator.notify({
  type: 'cxScoreUpdated',
  category: 'call-score',
  username: 'bob',
  payload: { score: 4.2 },
})
say('Callback', `answered ${score?.status}: its header "token" was the right one`)

// 5. The same subscription again is a conflict. The error says what it means and what to do.
try {
  await client.createSubscription(subscription)
} catch (error) {
  if (!(error instanceof SubscriptionConflictError)) throw error
  sayWhatWasSent()
  say('Conflict', `${error.reason}: ${error.message}`)
}
const replacement = await client.createSubscription({ ...subscription, recreateIfExists: true })
sayWhatWasSent()
say('Resolved', `by recreateIfExists: subscription ${replacement.subscriptionId} replaces ${subscriptionId}`)

// 6. The end.
await client.unsubscribe(replacement.subscriptionId)
sayWhatWasSent()
say('Unsubscribed', `${emulator.subscriptions.length} subscriptions are left`)

await receiver.close(server, { timeoutMs: 10_000 })
await client.close()
await emulator.close()
say('Next', 'try the emulator with your own app: npx --no notification-subscriber emulator')

/** The last request as it arrived at the service, and the status of its answer. */
function sayWhatWasSent(): void {
  const request = emulator.requests.at(-1)
  if (request === undefined) return
  say('Sent', `${request.method} ${request.path} → ${request.status}`)
  for (const [name, value] of new URLSearchParams(request.body)) say('', `  ${name} = ${value}`)
}

function say(title: string, text: string): void {
  console.log(`${title.padEnd(13)} ${text}`)
}
