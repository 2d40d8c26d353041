/**
 * An app under development, against an emulator with a page from which notifications are sent.
 *
 *     npm install notification-subscriber tsx
 *     npx tsx develop-with-emulator.mts
 *
 * The emulator runs in this process. One in another terminal stays while your app restarts:
 *
 *     npx notification-subscriber emulator
 *     npx tsx --env-file=.emulator/env develop-with-emulator.mts
 *     npx notification-subscriber notify
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { DeliveryReceiver, NotificationClient, toNodeHandler } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'

// An emulator calls this address. The service needs a public `https:` address (docs/command-line.md, Callbacks to a laptop).
// The file has a CALLBACK_TOKEN, too.
const { CALLBACK_TOKEN: callbackToken = randomBytes(24).toString('base64url'), PORT: port = '3000' } =
  process.env
const { NOTIFICATION_BASE_URL, CALLBACK_URL: callbackUrl = `http://127.0.0.1:${port}/notifications` } =
  process.env

const receiver = new DeliveryReceiver({ secrets: { token: callbackToken } }).onAny(
  ({ type, payload }, { subscriptionId }) => {
    console.log(`Subscription ${subscriptionId}: ${type} ${JSON.stringify(payload)}`)
  },
)
const server = createServer(toNodeHandler(receiver)).listen(Number(port), '127.0.0.1')
await once(server, 'listening')

// .emulator/env sets NOTIFICATION_BASE_URL and the variables beside it: NOTIFICATION_CA_FILE trusts the emulator's certificate.
await using emulator = NOTIFICATION_BASE_URL ? undefined : await startEmulator({ page: true })
await using client = emulator ? new NotificationClient(emulator.clientOptions) : NotificationClient.fromEnv()
const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['behavioral', 'call-score', 'conversation-ai'],
  usernames: ['alice'],
  callbackUrl,
  parameters: { token: callbackToken },
  // The subscription of an earlier start has another token.
  recreateIfExists: true,
})
console.log(
  `Subscription ${subscriptionId}: notifications of alice come to ${callbackUrl}. Ctrl-C ends this app. Next:`,
)
console.log(
  emulator
    ? `  open ${emulator.pageUrl} and send a notification to alice`
    : '  npx notification-subscriber notify',
)

await new Promise((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve))
// The emulator in the other terminal may have ended first.
const outcome = await client.unsubscribe(subscriptionId).then(
  () => 'Unsubscribed.',
  (error: Error) => error.message,
)
await receiver.close(server, { timeoutMs: 10_000 })
console.log(`${outcome} Next, with your own account in .env: subscribe-and-unsubscribe.mts`)
