/** What needs Node.js 22 or later: undici 8 as dispatcher, Keyv 6 as token cache, msw 3. */
import assert from 'node:assert/strict'
import Keyv from 'keyv'
import { http } from 'msw-3'
import { setupServer } from 'msw-3/node'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { Agent } from 'undici-8'

const subscription = {
  notificationTypes: ['call-score'],
  usernames: ['alice'],
  callbackUrl: 'https://app.example.com/notifications',
}
const emulator = await startEmulator()
const { auth, baseUrl } = emulator.clientOptions

const dispatcher = new Agent({ connect: { ca: emulator.ca } })
const tokenCache = new Keyv()
const clients = [1, 2].map(
  () => new NotificationClient({ baseUrl, auth: { ...auth, tokenCache }, dispatcher, logger: false }),
)
const [first, second] = clients
const { subscriptionId } = await first.createSubscription(subscription)
await second.unsubscribe(subscriptionId)
await assert.rejects(second.unsubscribe(subscriptionId), { code: 'SUBSCRIPTION_NOT_FOUND' })
assert.equal(await second.getAccessToken(), await first.getAccessToken())
assert.equal(emulator.requests.filter(({ operation }) => operation === 'token').length, 1)
await dispatcher.close()

const addresses = { baseUrl: 'https://notifications.example.com', authUrl: 'https://auth.acme.example.com' }
const server = setupServer(
  http.all('*', ({ request }) => emulator.fetch(request).catch(() => Response.error())),
)
server.listen({ onUnhandledRequest: 'error' })
const mocked = new NotificationClient({
  baseUrl: addresses.baseUrl,
  auth: { ...auth, authUrl: addresses.authUrl },
  fetch: globalThis.fetch,
})
const created = await mocked.createSubscription(subscription)
assert.equal(emulator.subscriptions[0].subscriptionId, created.subscriptionId)
server.close()

for (const client of [...clients, mocked]) await client.close()
await emulator.close()
console.log('The story is over')
