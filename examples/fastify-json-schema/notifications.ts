/** Callbacks in a Fastify app that validates with JSON Schema, as its other routes may do: the package ships the schema. */
import { timingSafeEqual } from 'node:crypto'
import { createRequire } from 'node:module'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { FastifyPluginAsync } from 'fastify'
import type { Delivery } from 'notification-subscriber/webhooks'

const require = createRequire(import.meta.url)
const deliverySchema: object = require('notification-subscriber/delivery.schema.json')

export const notifications: FastifyPluginAsync<{ callbackToken: string }> = async (
  app,
  { callbackToken },
) => {
  // Fastify's own validator knows an older draft, and would turn texts into numbers.
  const ajv = new Ajv2020()
  app.setValidatorCompiler(({ schema }) => ajv.compile(schema))

  // Before anything is read. Only what is not from the service is refused.
  app.addHook('onRequest', async ({ headers: { token } }, reply) => {
    return isEqual(token, callbackToken) ? undefined : reply.code(401).send()
  })

  // A body that is no JSON, or a failure of `handle`.
  app.setErrorHandler(async (error, _request, reply) => {
    console.error('A callback was not handled:', error)
    return reply.code(204).send()
  })

  app.post<{ Body: Delivery }>(
    '/notifications',
    // Not 400 when the schema fails: the service takes no correction, counts it as a failed callback, and ends the
    // subscription after the third in a row. So the failure is attached, reported, and answered with 204.
    { schema: { body: deliverySchema }, attachValidation: true },
    async ({ body, validationError }, reply) => {
      if (validationError) console.error('Not a delivery:', validationError.message, body)
      else await handle(body)
      return reply.code(204).send()
    },
  )
}

async function handle({ subscriptionId, notification }: Delivery): Promise<void> {
  if (notification.type !== 'lowEnergyAgentOpened') return
  const { username, callId } = notification.payload
  console.log(`Subscription ${subscriptionId}: ${username} sounds tired on ${callId}`)
}

function isEqual(sent: unknown, expected: string): boolean {
  const [given, wanted] = [Buffer.from(String(sent)), Buffer.from(expected)]
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}
