/** The emulator on msw, at an app's production addresses. */
import assert from 'node:assert/strict'
import { http } from 'msw'
import { setupServer } from 'msw/node'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'

test('the emulator answers on msw', async () => {
  const baseUrl = 'https://notifications.example.com'
  const authUrl = 'https://auth.acme.example.com'
  const emulator = await startEmulator({ domain: 'acme', clientId: 'id', clientSecret: 'secret' })
  const server = setupServer(
    http.all('*', ({ request }) => emulator.fetch(request).catch(() => Response.error())),
  )
  server.listen({ onUnhandledRequest: 'error' })
  const client = new NotificationClient({
    baseUrl,
    auth: { authUrl, domain: 'acme', clientId: 'id', clientSecret: 'secret' },
    fetch: globalThis.fetch,
  })
  const { subscriptionId } = await client.createSubscription({
    notificationTypes: ['call-score'],
    usernames: ['alice'],
    callbackUrl: 'https://app.example.com/notifications',
  })
  assert.equal(emulator.subscriptions[0].subscriptionId, subscriptionId)
  await client.close()
  server.close()
  await emulator.close()
}, 60_000)
