/** The delivery body of docs/service.md, Resources: in the words of each validator, as fast as each can have it. */
import { Ajv, type ValidateFunction } from 'ajv'
import { type } from 'arktype'
import * as v from 'valibot'
import { deliverySchema } from '../../dist/webhooks/index.js'

export const deliveryJsonSchema = {
  type: 'object',
  required: ['subscriptionId', 'notification'],
  properties: {
    subscriptionId: {
      type: 'integer',
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
    },
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

const integer = v.pipe(v.number(), v.integer())
const common = { id: v.string(), time: integer, ver: v.string() }

export const valibotDelivery = v.looseObject({
  subscriptionId: v.pipe(v.number(), v.safeInteger()),
  notification: v.union([
    v.looseObject({
      ...common,
      type: v.literal('lowEnergyAgentOpened'),
      payload: v.looseObject({
        callId: v.string(),
        username: v.string(),
        bTime: integer,
        nTime: integer,
        idx: integer,
      }),
    }),
    v.looseObject({
      ...common,
      type: v.pipe(v.string(), v.notValue('lowEnergyAgentOpened')),
      payload: v.custom<object>(isPayload),
    }),
  ]),
})

function isPayload(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const lowEnergyPayload = type({
  callId: 'string',
  username: 'string',
  bTime: 'number.integer',
  nTime: 'number.integer',
  idx: 'number.integer',
})

export const arktypeDelivery = type({
  subscriptionId: 'number.safe & number.integer',
  notification: type({
    id: 'string',
    time: 'number.integer',
    ver: 'string',
    type: 'string',
    payload: type('object').narrow(isPayload),
  }).narrow(
    (notification) =>
      notification.type !== 'lowEnergyAgentOpened' || lowEnergyPayload.allows(notification.payload),
  ),
})

export { deliverySchema as zodDelivery }
