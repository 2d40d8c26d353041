import { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { recordingLogger, secrets } from './support.js'

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterEach(() => void vi.restoreAllMocks())

describe('the log about a handler for an undocumented type', () => {
  test.each([
    ['lowEnergyAgentOpend', 'lowEnergyAgentOpened'],
    ['LowEnergyAgentOpened', 'lowEnergyAgentOpened'],
    ['silenceHigh', 'silenceHighOpened'],
    ['cxScoreUpdate', 'cxScoreUpdated'],
    ['topicKeywordsAbsentEvents', 'topicKeywordAbsentEvent'],
    ['somethingNew', 'silenceHighOpened'],
  ])('gets one warning about a handler for %s, which names %s', (type, nearest) => {
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger }).onAny(() => {})
    receiver.on<string>(type, () => {}).on<string>(type, () => {})
    expect(lines).toMatchObject([
      { level: 'warn', fields: { event: 'handler.type-undocumented', type, nearest } },
    ])
  })

  test('gets a warning about a type that is subscribed to, with what is delivered for it', () => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger }).on<string>('call-score', () => {})
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

  test('is console.error by default', () => {
    new DeliveryReceiver({ secrets }).on<string>('call-score', () => {}).on('lowEnergyAgentOpened', () => {})
    expect(console.error).toHaveBeenCalledOnce()
    new DeliveryReceiver({ secrets, logger: false }).on<string>('call-score', () => {})
    expect(console.error).toHaveBeenCalledOnce()
  })
})
