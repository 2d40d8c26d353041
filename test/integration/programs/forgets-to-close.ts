/** Run as a child process that trusts the emulator through NODE_EXTRA_CA_CERTS: it never closes its client. */
import { NotificationClient } from 'notification-subscriber'

const undiciIsLoaded = () => Reflect.has(globalThis, Symbol.for('undici.globalDispatcher.1'))

const loadedByImport = undiciIsLoaded()
const client = NotificationClient.fromEnv()
await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'https://app.example.com/notifications',
})
console.log(JSON.stringify({ loadedByImport, loadedByRequest: undiciIsLoaded() }))
