/**
 * An app under development, against an emulator that runs in another terminal. Three of them:
 *
 * 1. `npx notification-subscriber emulator --allow-insecure-loopback --state .emulator`; copy what it prints to `.env`.
 * 2. `npx tsx --env-file=.env examples/develop-with-emulator.ts`
 * 3. `npx notification-subscriber notify --state .emulator --type lowEnergyAgentOpened --user alice`; or click on the
 *    page whose address the first one printed.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { DeliveryReceiver, NotificationClient, toNodeHandler } from 'notification-subscriber'

// In production an `https:` address of yours, known outside; only an emulator accepts this one.
const { PORT: port = '3000' } = process.env
const callbackUrl = `http://127.0.0.1:${port}/notifications`
const callbackToken = randomBytes(24).toString('base64url')

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
console.log(`Subscription ${subscriptionId}: notifications of alice come to ${callbackUrl}. Ctrl-C ends it.`)

await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
await client.unsubscribe(subscriptionId)
server.close()
await receiver.drain()
console.log('Unsubscribed.')
