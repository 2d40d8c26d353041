/** Callbacks in a Fastify app. Run it with `npx tsx examples/receive-fastify.ts`. */
import Fastify, { type FastifyPluginAsync } from 'fastify'
import { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { callbackToken, demonstrate } from './support/demonstrate.js'

const receiver = new DeliveryReceiver({
  secrets: { token: callbackToken },
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
}).on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
  console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
})

const notifications: FastifyPluginAsync = async (app) => {
  // Only inside this plugin, bodies stay bytes: Fastify's own parser answers malformed JSON with 400, which the
  // service counts as a failed delivery.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  app.post('/notifications', async ({ method, headers, body }, reply) => {
    const answer = await receiver.handle({ method, headers, body })
    return reply.code(answer.status).headers(answer.headers).send()
  })
}

await demonstrate(receiver, async (tls) => {
  const app = Fastify({ https: tls })
  await app.register(notifications)
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  return { origin, close: () => app.close() }
})
