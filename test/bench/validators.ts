/** The delivery body of docs/service.md, Resources: in the words of each validator, as fast as each can have it. */
import { Ajv, type ValidateFunction } from 'ajv'
import { deliverySchema } from '../../dist/webhooks/index.js'

export const deliveryJsonSchema = {
  type: 'object',
  required: ['subscriptionId', 'notification'],
  properties: {
    subscriptionId: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
    notification: {
      type: 'object',
      required: ['id', 'time', 'ver', 'type', 'payload'],
      properties: {
        id: { type: 'string' },
        time: { type: 'integer' },
        ver: { type: 'string' },
        type: { type: 'string' },
        payload: { type: 'object' },
      },
      if: { properties: { type: { const: 'lowEnergyAgentOpened' } } },
      // biome-ignore lint/suspicious/noThenProperty: that is its name in JSON Schema.
      then: {
        properties: {
          payload: {
            type: 'object',
            required: ['callId', 'username', 'bTime', 'nTime', 'idx'],
            properties: {
              callId: { type: 'string' },
              username: { type: 'string' },
              bTime: { type: 'integer' },
              nTime: { type: 'integer' },
              idx: { type: 'integer' },
            },
          },
        },
      },
    },
  },
} as const

export function compiledAjv(): ValidateFunction {
  return new Ajv({ strict: true, strictRequired: false, strictTypes: false }).compile(deliveryJsonSchema)
}

export { deliverySchema as zodDelivery }
