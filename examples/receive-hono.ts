/** Callbacks in a Hono app, here on Node.js. Run it with `npx tsx examples/receive-hono.ts`. */
import { createServer } from 'node:https'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { DeliveryReceiver, toWebHandler } from 'notification-subscriber/webhooks'
import { callbackToken, demonstrate, listen } from './support/demonstrate.js'

const receiver = new DeliveryReceiver({
  secrets: { token: callbackToken },
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
}).on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
  console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
})

const handleCallback = toWebHandler(receiver)

const app = new Hono()
app.post('/notifications', (context) => handleCallback(context.req.raw))

await demonstrate(receiver, (tls) =>
  listen(createAdaptorServer({ fetch: app.fetch, createServer, serverOptions: tls })),
)
