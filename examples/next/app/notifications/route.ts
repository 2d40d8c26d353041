/** Callbacks in a Next.js app: the route handler of `/notifications`. */
import { DeliveryReceiver, toWebHandler } from 'notification-subscriber/webhooks'

// `next build` loads this file too: CALLBACK_TOKEN has to be set there, but may have another value.
const { CALLBACK_TOKEN = '' } = process.env

const receiver = new DeliveryReceiver({
  secrets: { token: CALLBACK_TOKEN },
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
}).on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
  console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
})

// For handlers that take longer than `ackTimeoutMs`, where the platform stops with the answer: add
// `{ waitUntil: after }`, with `after` from 'next/server'.
export const POST = toWebHandler(receiver)
