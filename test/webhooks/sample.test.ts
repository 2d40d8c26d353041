import {
  documentedNotificationTypes,
  InvalidDeliveryError,
  parseDelivery,
  sampleDelivery,
} from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe('sampleDelivery', () => {
  test('is a valid delivery of every documented type, as object and as text', () => {
    for (const type of Object.values(documentedNotificationTypes).flat()) {
      const { delivery, body, headers, context } = sampleDelivery(type)
      expect(parseDelivery(body)).toEqual(delivery)
      expect(delivery.notification).toMatchObject({ type, ver: '1.0', id: expect.stringMatching(uuid) })
      expect(headers).toEqual({ 'content-type': 'application/json' })
      expect([context.delivery, context.subscriptionId]).toEqual([delivery, delivery.subscriptionId])
    }
  })

  test('has the documented payload for lowEnergyAgentOpened, and an empty one for others, new each time', () => {
    const sample = () => sampleDelivery('lowEnergyAgentOpened').delivery.notification
    const [first, second] = [sample(), sample()]
    expect(Object.keys(first.payload)).toEqual(['callId', 'username', 'bTime', 'nTime', 'idx'])
    expect(sampleDelivery('cxScoreUpdated').delivery.notification.payload).toEqual({})
    expect(first.id).not.toBe(second.id)
    first.payload.username = 'changed'
    expect(sample().payload.username).toBe('alice')
  })

  test('takes overrides: the payload is merged, one level, and headers are read by the context', () => {
    const { delivery, body, headers, context } = sampleDelivery('lowEnergyAgentOpened', {
      subscriptionId: 7,
      id: 'n-1',
      time: 0,
      payload: { username: 'bob' },
      headers: { 'X-Tenant': 'acme' },
    })
    expect(delivery).toMatchObject({
      subscriptionId: 7,
      notification: { id: 'n-1', time: 0, payload: { username: 'bob', callId: 'call-1' } },
    })
    expect(JSON.parse(body)).toEqual(delivery)
    expect(headers).toEqual({ 'content-type': 'application/json', 'X-Tenant': 'acme' })
    expect(['x-tenant', 'token'].map(context.header)).toEqual(['acme', undefined])
  })

  test('takes payload schemas, as the receiver has them, also in place of the documented one', () => {
    const payloads = {
      brandNew: z.object({ score: z.coerce.number() }),
      lowEnergyAgentOpened: z.looseObject({ callId: z.string() }),
    }
    const scored = sampleDelivery('brandNew', { payloads, payload: { score: '4' } })
    expect(scored.delivery.notification.payload).toEqual({ score: 4 })
    const low = sampleDelivery('lowEnergyAgentOpened', { payloads, payload: { callId: 'c' } })
    expect(low.delivery.notification.payload).toEqual({ callId: 'c' })
    expect(() => sampleDelivery('brandNew', { payloads, payload: {} as never })).toThrow(InvalidDeliveryError)
  })

  test.each<object>([{ payload: { idx: 0.5 } }, { subscriptionId: '7a' }, { payload: { idx: 10n } }])(
    'throws InvalidDeliveryError for what is no delivery',
    (overrides) => {
      expect(() => sampleDelivery('lowEnergyAgentOpened', overrides)).toThrow(InvalidDeliveryError)
    },
  )
})
