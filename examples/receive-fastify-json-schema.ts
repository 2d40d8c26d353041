/**
 * The route in fastify-json-schema/notifications.ts in an app. Run it with
 * `npx tsx examples/receive-fastify-json-schema.ts`.
 */
import Fastify from 'fastify'
import { notifications } from './fastify-json-schema/notifications.js'
import { callbackToken, demonstrate } from './support/demonstrate.js'

// Closing waits for the requests in flight, and with them for their handling: nothing is left to drain.
await demonstrate({ drain: async () => 0 }, async (tls) => {
  const app = Fastify({ https: tls })
  await app.register(notifications, { callbackToken })
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  return { origin, close: () => app.close() }
})
