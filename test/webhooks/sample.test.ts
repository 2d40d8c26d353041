import {
  ConfigurationError,
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

  test('has the documented payload for lowEnergyAgentOpened, and an empty one for others', () => {
    const { payload } = sampleDelivery('lowEnergyAgentOpened').delivery.notification
    expect(Object.keys(payload)).toEqual(['callId', 'username', 'bTime', 'nTime', 'idx'])
    expect(sampleDelivery('cxScoreUpdated').delivery.notification.payload).toEqual({})
  })

  test('is new each time: id, time and objects', () => {
    const before = Date.now()
    const [first, second] = [sampleDelivery('lowEnergyAgentOpened'), sampleDelivery('lowEnergyAgentOpened')]
    expect(first.delivery.notification.id).not.toBe(second.delivery.notification.id)
    expect(first.delivery.notification.time).toBeGreaterThanOrEqual(before)
    first.delivery.notification.payload.username = 'changed'
    expect(sampleDelivery('lowEnergyAgentOpened').delivery.notification.payload.username).toBe('alice')
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
    const seen = ['x-tenant', 'Content-Type', 'token'].map(context.header)
    expect(seen).toEqual(['acme', 'application/json', undefined])
    expect(context.subscriptionId).toBe(7)
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

  test.each<[string, object]>([
    ['a payload of another shape', { payload: { idx: 0.5 } }],
    ['a subscriptionId that is no number', { subscriptionId: '7a' }],
    ['a time that is no integer', { time: 1.5 }],
    ['a payload that JSON cannot hold', { payload: { idx: 10n } }],
  ])('throws InvalidDeliveryError for %s', (_, overrides) => {
    expect(() => sampleDelivery('lowEnergyAgentOpened', overrides)).toThrow(InvalidDeliveryError)
  })

  test.each<[string, object, (string | undefined)[]]>([
    ['lowEnergyAgentOpend', {}, ['type']],
    ['lowEnergyAgentOpened', { paylod: {} }, []],
    ['lowEnergyAgentOpened', { payload: { user: 'bob' } }, ['payload']],
  ])('throws ConfigurationError for %s with %j', (type, overrides, path) => {
    const make = () => sampleDelivery(type as 'cxScoreUpdated', overrides)
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(expect.objectContaining({ issues: [{ path, message: expect.any(String) }] }))
  })
})
