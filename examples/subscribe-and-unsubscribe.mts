/**
 * Subscribes to the notifications of a user, and unsubscribes.
 *
 *     npm install notification-subscriber tsx
 *     npx notification-subscriber emulator --write-env .env     (in another terminal; or .env with your own account)
 *     npx tsx --env-file=.env subscribe-and-unsubscribe.mts
 */
import { NotificationClient, SubscriptionConflictError } from 'notification-subscriber'

const {
  CALLBACK_TOKEN: token = 'a-long-random-value',
  CALLBACK_URL: callbackUrl = 'https://app.example.com/notifications',
  AGENT_USERNAME: username = 'alice',
} = process.env

// Addresses and credentials are in NOTIFICATION_BASE_URL and the variables beside it.
await using client = NotificationClient.fromEnv()

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
  console.error(
    `${error.message} Next: create it with \`recreateIfExists: true\`, which replaces the existing one.`,
  )
  process.exitCode = 1
}
