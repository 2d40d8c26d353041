/**
 * Subscribes to the notifications of a user, and unsubscribes.
 *
 *     npm install ./notification-subscriber-*.tgz tsx
 *     npx tsx subscribe-and-unsubscribe.mts
 *
 * On the emulator; with your account in .env (docs/client.md, Environment variables): `npx tsx --env-file=.env …`
 */
import { randomBytes } from 'node:crypto'
import { NotificationClient, SubscriptionConflictError } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'

const {
  NOTIFICATION_BASE_URL,
  CALLBACK_TOKEN: token = randomBytes(24).toString('base64url'),
  CALLBACK_URL: callbackUrl = 'https://app.example.com/notifications',
  AGENT_USERNAME: username = 'alice',
} = process.env

// Addresses and credentials are in NOTIFICATION_BASE_URL and the variables beside it.
await using emulator = NOTIFICATION_BASE_URL ? undefined : await startEmulator()
await using client = emulator ? new NotificationClient(emulator.clientOptions) : NotificationClient.fromEnv()

const wanted = {
  notificationTypes: ['behavioral'],
  usernames: [username],
  callbackUrl,
  // Comes back as a header on every callback: the receiver knows the sender by it.
  parameters: { token },
} as const

try {
  const { subscriptionId } = await client.createSubscription(wanted)
  console.log(`Subscription ${subscriptionId}: notifications of ${username} go to ${callbackUrl}`)
  await client.unsubscribe(subscriptionId)
  console.log(`Unsubscribed ${subscriptionId}. Next: receive notifications with receive.mts`)
} catch (error) {
  if (!(error instanceof SubscriptionConflictError)) throw error
  console.error(error.message) // It says what to do.
  process.exitCode = 1
}
