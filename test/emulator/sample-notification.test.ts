import { documentedNotificationTypes, parseDelivery } from 'notification-subscriber'
import {
  type EmulatedNotification,
  sampleNotification,
  startEmulator,
} from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import { InvalidRequestError } from '../../src/errors.js'
import { created, Receiver } from './support.js'

describe('sampleNotification', () => {
  test('every documented type is valid, and comes by its own subscribable type', async () => {
    await using emulator = await startEmulator()
    await using receiver = await Receiver.start(emulator)
    for (const [category, types] of Object.entries(documentedNotificationTypes)) {
      await created(emulator, { types: category, users: 'alice', url: `${receiver.url}/${category}` })
      for (const type of types) await emulator.notify(sampleNotification(type))
    }
    const delivered = receiver.callbacks.map(({ path, body }) => {
      return [path.split('/').at(-1), parseDelivery(JSON.stringify(body)).notification.type]
    })
    expect(delivered).toEqual(
      Object.entries(documentedNotificationTypes).flatMap(([category, types]) =>
        types.map((type) => [category, type]),
      ),
    )
  })

  test('the documented payload is about the user, and the others are empty', () => {
    expect(sampleNotification('lowEnergyAgentOpened', { username: 'bob' })).toEqual({
      type: 'lowEnergyAgentOpened',
      category: 'behavioral',
      username: 'bob',
      payload: { callId: 'call-1', username: 'bob', bTime: 21_648, nTime: 35_912, idx: 0 },
    })
    expect(sampleNotification('cxScoreUpdated')).toEqual({
      type: 'cxScoreUpdated',
      category: 'call-score',
      username: 'alice',
      payload: {},
    })
  })

  test('overrides replace whole fields', () => {
    const overrides = { category: 'call-score', payload: { a: 1 }, id: 'n1', time: 5, ver: '2.0' } as const
    expect(sampleNotification('lowEnergyAgentOpened', overrides)).toEqual({
      type: 'lowEnergyAgentOpened',
      username: 'alice',
      ...overrides,
    })
  })

  test('a type that is not documented needs a category', () => {
    expect(sampleNotification('brandNew', { category: 'conversation-ai' })).toEqual({
      type: 'brandNew',
      category: 'conversation-ai',
      username: 'alice',
      payload: {},
    } satisfies EmulatedNotification)
    const sample = () => sampleNotification('brandNew')
    expect(sample).toThrow(InvalidRequestError)
    expect(sample).toThrow(
      'There is no sample of this notification: `category` is missing: it must be one of behavioral, call-score, conversation-ai, because "brandNew" is no documented type.',
    )
  })
})
