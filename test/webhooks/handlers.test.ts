import { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { recordingLogger, secrets } from './support.js'

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterEach(() => void vi.restoreAllMocks())

describe('a handler for a type that may never be delivered: the log', () => {
  test.each([
    ['lowEnergyAgentOpend', 'lowEnergyAgentOpened'],
    ['LowEnergyAgentOpened', 'lowEnergyAgentOpened'],
    ['silenceHigh', 'silenceHighOpened'],
    ['cxScoreUpdate', 'cxScoreUpdated'],
    ['topicKeywordsAbsentEvents', 'topicKeywordAbsentEvent'],
  ])('gets one warning about a handler for %s, which names %s', (type, nearest) => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger }).on(type, () => {}).on(type, () => {})
    expect(lines).toMatchObject([
      { level: 'warn', fields: { event: 'handler.type-misspelt', type, nearest } },
    ])
  })

  test('gets an info line about a type that no documented one is near', () => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger }).on('somethingNew', () => {})
    const fields = { event: 'handler.type-undocumented', type: 'somethingNew' }
    expect(lines).toMatchObject([{ level: 'info', fields }])
  })

  test('gets a warning about a type that is subscribed to, with what is delivered for it', () => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger }).on('call-score', () => {})
    const fields = { event: 'handler.type-not-delivered', type: 'call-score', delivered: ['cxScoreUpdated'] }
    expect(lines).toMatchObject([{ level: 'warn', fields }])
  })

  test('gets none about a type that is documented or has a schema', () => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger, payloads: { mine: z.object({}) } })
      .on('mine', () => {})
      .on('topicKeywordEvent', () => {})
      .onAny(() => {})
    expect(lines).toEqual([])
  })

  test('is console.error by default for a type that is misspelt or never delivered, and for no other', () => {
    new DeliveryReceiver({ secrets })
      .on('lowEnergyAgentOpend', () => {})
      .on('call-score', () => {})
      .on('somethingNew', () => {})
      .on('lowEnergyAgentOpened', () => {})
    expect(vi.mocked(console.error).mock.calls.map(([, fields]) => fields)).toEqual([
      { event: 'handler.type-misspelt', type: 'lowEnergyAgentOpend', nearest: 'lowEnergyAgentOpened' },
      { event: 'handler.type-not-delivered', type: 'call-score', delivered: ['cxScoreUpdated'] },
    ])
    new DeliveryReceiver({ secrets, logger: false }).on('lowEnergyAgentOpend', () => {})
    expect(console.error).toHaveBeenCalledTimes(2)
  })
})
