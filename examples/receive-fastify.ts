/** Callbacks in a Fastify app. Run it with `npx tsx examples/receive-fastify.ts`. */
import Fastify from 'fastify'
import { DeliveryReceiver, toFastifyPlugin } from 'notification-subscriber/webhooks'
import { callbackToken, demonstrate } from './support/demonstrate.js'

const receiver = new DeliveryReceiver({
  secrets: { token: callbackToken },
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
}).on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
  console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
})

await demonstrate(receiver, async (tls) => {
  const app = Fastify({ https: tls })
  // Fastify's own parser would answer malformed JSON with 400, which the service counts as a failed delivery.
  await app.register(toFastifyPlugin(receiver, { path: '/notifications' }))
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  return { origin, close: () => app.close() }
})
