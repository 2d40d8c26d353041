/** A route of the pages router, which waits for the promise of its handler. */
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'

const receiver = new DeliveryReceiver({
  secrets: () => ({ token: process.env.CALLBACK_TOKEN ?? '' }),
}).onAny(async ({ type }) => console.log(`Handled ${type} in the pages router`))

export const config = { api: { bodyParser: false } }

// Next.js finds a route by its default export.
export default toNodeHandler(receiver)
