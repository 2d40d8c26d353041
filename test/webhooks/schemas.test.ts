import {
  deliverySchema,
  documentedNotificationTypes,
  notificationTypes,
} from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { changed, lowEnergyDelivery } from './deliveries.js'

describe('the exported schemas (docs/service.md, Resources)', () => {
  test('compose, with issue paths from the root of the composition', () => {
    const result = z
      .array(deliverySchema)
      .safeParse([lowEnergyDelivery(), changed(['notification', 'payload', 'idx'], '0')])
    expect(result.error?.issues).toEqual([
      expect.objectContaining({ path: [1, 'notification', 'payload', 'idx'], code: 'invalid_type' }),
    ])
  })
})

describe('the catalogue (docs/service.md, Notification types)', () => {
  test('has the three subscribable types', () => {
    expect(notificationTypes).toEqual(['behavioral', 'call-score', 'conversation-ai'])
    expect(Object.keys(documentedNotificationTypes)).toEqual(notificationTypes)
  })

  test('has each documented notification type once', () => {
    const types = Object.values(documentedNotificationTypes).flat()
    expect(new Set(types).size).toBe(types.length)
    expect(documentedNotificationTypes.behavioral).toHaveLength(18)
    expect(documentedNotificationTypes.behavioral).toContain('lowEnergyAgentOpened')
    for (const type of documentedNotificationTypes.behavioral) {
      const counterpart = type.endsWith('Opened')
        ? type.replace(/Opened$/, 'Closed')
        : type.replace(/Closed$/, 'Opened')
      expect(documentedNotificationTypes.behavioral).toContain(counterpart)
    }
    expect(documentedNotificationTypes['call-score']).toEqual(['cxScoreUpdated'])
    expect(documentedNotificationTypes['conversation-ai']).toEqual([
      'topicKeywordEvent',
      'topicKeywordAbsentEvent',
    ])
  })
})
