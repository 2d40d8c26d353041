/** A worker on Cloudflare Workers, as docs/receiver.md has it, with an answer that does not wait for handlers. */
import { DeliveryReceiver, toWebHandler } from 'notification-subscriber/webhooks'

const handled = []
const problems = []
const receiver = new DeliveryReceiver({
  secrets: { token: 'the-secret-of-the-worker' },
  ackTimeoutMs: 50,
  logger: false,
  onInvalid: (error) => problems.push(error.message),
}).onAny(async ({ id }) => {
  if (id === 'slow') await new Promise((resolve) => setTimeout(resolve, 300))
  handled.push(id)
})
const handle = toWebHandler(receiver, { waitUntil: (promise, _env, context) => context.waitUntil(promise) })

export default {
  fetch: (request, env, context) =>
    request.method === 'GET' ? Response.json({ handled, problems }) : handle(request, env, context),
}
