import { DeliveryReceiver, deliverySchema, safeParseDelivery } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { changed, lowEnergyDelivery } from './deliveries.js'

test('the exported schemas compose, with issue paths from the root of the composition', () => {
  const deliveries = [lowEnergyDelivery(), changed(['notification', 'payload', 'idx'], '0')]
  const { error } = z.array(deliverySchema).safeParse(deliveries)
  expect(error?.issues).toMatchObject([{ path: [1, 'notification', 'payload', 'idx'], code: 'invalid_type' }])
})

describe('the exported schemas are shared with an app', () => {
  test('an id as text becomes a number, as parseDelivery has it; its JSON Schema says so', () => {
    for (const subscriptionId of ['4711', '-1', '0', '007', '1e3', '', 'x', '9007199254740993', 1.5, null]) {
      const body = { ...lowEnergyDelivery(), subscriptionId }
      const parsed = safeParseDelivery(body)
      const { success, data } = deliverySchema.safeParse(body)
      expect([subscriptionId, success, data]).toEqual([subscriptionId, parsed.success, parsed.data])
    }
    const { properties } = z.toJSONSchema(deliverySchema, { io: 'input' }) as { properties: object }
    expect(properties).toMatchObject({ subscriptionId: { anyOf: [{ type: 'integer' }, { type: 'string' }] } })
    expect(z.toJSONSchema(deliverySchema)).toMatchObject({
      properties: { subscriptionId: { type: 'integer' } },
    })
  })

  test('the words of an app’s z.config() are never those of this package', () => {
    const { customError } = z.config()
    z.config({ customError: ({ input }) => `got ${JSON.stringify(input)}` })
    try {
      const path = ['notification', 'payload', 'callId']
      const wrong = changed(path, ['+49 151'])
      const message = 'expected string, received array'
      expect(safeParseDelivery(wrong).error?.issues).toEqual([{ path, message }])
      expect(deliverySchema.safeParse(wrong).error?.message).toContain(message)
      expect(() => new DeliveryReceiver({ secrets: { token: 'x' }, ackTimeoutMs: 'later' } as never)).toThrow(
        /`ackTimeoutMs`: expected number/,
      )
    } finally {
      z.config({ customError })
    }
  })
})
