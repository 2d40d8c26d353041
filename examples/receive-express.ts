/** Callbacks in an Express app, version 5 or 4. Run it with `npx tsx examples/receive-express.ts`. */
import { createServer } from 'node:https'
import express from 'express'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { callbackToken, demonstrate, listen } from './support/demonstrate.js'

const receiver = new DeliveryReceiver({
  secrets: { token: callbackToken },
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
}).on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
  console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
})

const app = express()
// Before the body parser, which would answer malformed JSON with 400, more than 100 kB with 413 and an unknown charset
// with 415: each counts as a failed delivery.
app.post('/notifications', toNodeHandler(receiver))
app.use(express.json())

await demonstrate(receiver, (tls) => listen(createServer(tls, app)))
