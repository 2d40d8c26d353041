/**
 * The whole story in one script, on the emulator: token, subscription, notification, conflict, unsubscribe.
 * It needs no account and no network: run it with `npm run quickstart`.
 */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  type Delivery,
  NotificationClient,
  parseDelivery,
  SubscriptionConflictError,
} from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'

// The notification service, in this process. In production this is the service's own address.
const emulator = await startEmulator()
step('The service listens', `at ${emulator.baseUrl} (emulated, with real HTTPS and real tokens)`)

// 1. A client. In production: baseUrl, and auth with the credentials issued to you.
const client = new NotificationClient(emulator.clientOptions)
const accessToken = await client.getAccessToken()
step(
  'An access token',
  `a JWT of ${accessToken.length} characters, ${accessToken.slice(0, 12)}…, kept and refreshed`,
)

// 2. A receiver. Callbacks carry no signature: a token of our own, sent back as a header, proves the sender.
const callbackToken = 'choose-a-long-random-value'
const receiver = createServer(emulator.tls, async (request, response) => {
  const body = await text(request)
  if (!isEqual(request.headers.token, callbackToken)) {
    response.writeHead(401).end()
    return
  }
  response.writeHead(204).end()
  step('A callback arrived', `authenticated by its header "token: ${request.headers.token}"`)
  show(parseDelivery(body))
})
const callbackUrl = `${await listen(receiver)}/notifications`
step('Our receiver listens', `at ${callbackUrl}`)

// 3. A subscription: two types for two users. The parameter comes back as a header on every callback.
const subscription = {
  notificationTypes: ['behavioral', 'call-score'],
  usernames: ['alice', 'bob'],
  callbackUrl,
  parameters: { token: callbackToken },
} as const
const { subscriptionId } = await client.createSubscription(subscription)
step(
  'A subscription',
  `number ${subscriptionId}, for ${subscription.notificationTypes} of ${subscription.usernames}`,
)

// 4. Something happens on a live call, and the service tells us.
await emulator.notify({
  type: 'lowEnergyAgentOpened',
  category: 'behavioral',
  username: 'alice',
  payload: { callId: 'call-1', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
})
await emulator.notify({
  type: 'cxScoreUpdated',
  category: 'call-score',
  username: 'bob',
  payload: { score: 4.2 },
})

// 5. The same subscription again is a conflict, and the error says what to do.
try {
  await client.createSubscription(subscription)
} catch (error) {
  if (!(error instanceof SubscriptionConflictError)) throw error
  step('A conflict', `409, ${error.reason}`, error.message)
}
const replacement = await client.createSubscription({ ...subscription, recreateIfExists: true })
step('Resolved', `with recreateIfExists: number ${replacement.subscriptionId} replaces ${subscriptionId}`)

// 6. The end.
await client.unsubscribe(replacement.subscriptionId)
step('Unsubscribed', `the service now has ${emulator.subscriptions.length} subscriptions`)

receiver.close()
await client.close()
await emulator.close()

/** Comparing `notification.type` narrows the payload: `callId` is a string, `idx` a number. */
function show({ subscriptionId, notification }: Delivery): void {
  if (notification.type === 'lowEnergyAgentOpened') {
    const { callId, username, idx } = notification.payload
    step('  typed', `subscription ${subscriptionId}: ${username} sounds tired on ${callId} (idx ${idx})`)
  } else {
    step(
      '  open',
      `subscription ${subscriptionId}: ${notification.type} ${JSON.stringify(notification.payload)}`,
    )
  }
}

function isEqual(received: string | string[] | undefined, expected: string): boolean {
  if (typeof received !== 'string' || received.length !== expected.length) return false
  return timingSafeEqual(Buffer.from(received), Buffer.from(expected))
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function step(title: string, ...lines: string[]): void {
  const [first, ...rest] = lines
  console.log(`${title.padEnd(22)} ${first}`)
  for (const line of rest) console.log(`${' '.repeat(22)} ${line}`)
}
