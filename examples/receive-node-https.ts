/** Callbacks with nothing but Node.js. Run it with `npx tsx examples/receive-node-https.ts`. */
import { createServer } from 'node:https'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { callbackToken, demonstrate, listen } from './support/demonstrate.js'

const receiver = new DeliveryReceiver({
  secrets: { token: callbackToken },
  // The service is answered with 204 in either case, so only these two tell you of a body or a notification that is lost.
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
}).on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
  console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
})

const handleCallback = toNodeHandler(receiver)

await demonstrate(receiver, (tls) =>
  listen(
    createServer(tls, (request, response) => {
      if (request.url === '/notifications') handleCallback(request, response)
      else response.writeHead(404).end()
    }),
  ),
)
