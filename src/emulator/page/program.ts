/** The first program of README, as "Connect" shows it; test/emulator/page/page.test.ts compares both. */
export const program = `import { createServer } from 'node:http'
import { DeliveryReceiver, NotificationClient, toNodeHandler } from 'notification-subscriber'

// CALLBACK_TOKEN is a secret of yours: the service sends it back as a header of every callback.
const { CALLBACK_TOKEN: token = '', CALLBACK_URL = 'http://localhost:3000/notifications' } = process.env

const receiver = new DeliveryReceiver({ secrets: { token } })
receiver.onAny(({ type, payload }) => console.log(\`Notification \${type}:\`, payload))
createServer(toNodeHandler(receiver)).listen(3000)

const client = NotificationClient.fromEnv() // reads NOTIFICATION_BASE_URL and the variables beside it
const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: CALLBACK_URL,
  parameters: { token },
  recreateIfExists: true, // replaces the identical subscription of an earlier start
})
console.log(\`Subscription \${subscriptionId} is active.\`)
`
