/**
 * An app under development, against an emulator. In two terminals, the last command in a third:
 *
 *     npm install notification-subscriber tsx
 *     npx notification-subscriber emulator --allow-insecure-loopback --state .emulator --write-env .env
 *     npx tsx --env-file=.env develop-with-emulator.mts
 *     npx notification-subscriber notify --state .emulator --type lowEnergyAgentOpened --user alice
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { DeliveryReceiver, NotificationClient, toNodeHandler } from 'notification-subscriber'

// The service calls `https:` addresses that it can reach (docs/command-line.md, Callbacks to a laptop); an emulator this one.
// The emulator writes a CALLBACK_TOKEN into .env.
const { CALLBACK_TOKEN: callbackToken = randomBytes(24).toString('base64url'), PORT: port = '3000' } =
  process.env
const { CALLBACK_URL: callbackUrl = `http://127.0.0.1:${port}/notifications` } = process.env

const receiver = new DeliveryReceiver({ secrets: { token: callbackToken } }).onAny(
  ({ type, payload }, { subscriptionId }) => {
    console.log(`Subscription ${subscriptionId}: ${type} ${JSON.stringify(payload)}`)
  },
)
const server = createServer(toNodeHandler(receiver)).listen(Number(port), '127.0.0.1')
await once(server, 'listening')

// NOTIFICATION_BASE_URL and the others, among them NOTIFICATION_CA_FILE, so that the emulator's certificate is trusted.
await using client = NotificationClient.fromEnv({ allowInsecureLoopback: true })
const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['behavioral', 'call-score', 'conversation-ai'],
  usernames: ['alice'],
  callbackUrl,
  parameters: { token: callbackToken },
  // A subscription that an earlier start left has another token.
  recreateIfExists: true,
})
console.log(
  `Subscription ${subscriptionId}: notifications of alice come to ${callbackUrl}. Ctrl-C ends this app. Next:`,
)
console.log('  npx notification-subscriber notify --state .emulator --type lowEnergyAgentOpened --user alice')

await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
await client.unsubscribe(subscriptionId)
server.close()
await receiver.drain()
console.log('Unsubscribed. Next, with your own account in .env: subscribe-and-unsubscribe.mts')
