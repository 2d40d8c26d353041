import type { NotificationClientOptions } from 'notification-subscriber'
import type { Emulator, RecordedCallback, RecordedRequest } from 'notification-subscriber/emulator'
import { describe, expectTypeOf, test } from 'vitest'

declare const emulator: Emulator

describe('the emulator', () => {
  test('has options that a client takes', () => {
    expectTypeOf(emulator.clientOptions).toExtend<NotificationClientOptions>()
  })

  test('notifies with a type and a user, and with more', () => {
    emulator.notify({ type: 'cxScoreUpdated', username: 'alice' })
    emulator.notify({ type: 'brandNew', category: 'behavioral', username: 'alice', payload: { a: 1 } })
    // @ts-expect-error A notification is about a user.
    emulator.notify({ type: 'cxScoreUpdated' })
    // @ts-expect-error A delivered type is no category.
    emulator.notify({ type: 'x', username: 'alice', category: 'cxScoreUpdated' })
  })

  test('calls listeners with what their event has', () => {
    emulator.on('request', (request) => expectTypeOf(request).toEqualTypeOf<RecordedRequest>())
    emulator.on('callback', (callback) => expectTypeOf(callback).toEqualTypeOf<RecordedCallback>())
    emulator.on('ended', (subscription, reason) => {
      expectTypeOf(subscription.usernames).toEqualTypeOf<readonly string[]>()
      expectTypeOf(reason).toEqualTypeOf<'unsubscribed' | 'replaced' | 'three-failures' | 'by-request'>()
    })
    // @ts-expect-error There is no such event.
    emulator.on('notified', () => {})
  })

  test('takes the faults that an endpoint or a callback can have', () => {
    emulator.injectFault('create', { malformedBody: true }, { times: 2 })
    emulator.injectFault('callback', { reset: 'after-processing' }, { subscriptionId: 1 })
    // @ts-expect-error The emulator does not send the body of a callback's answer.
    emulator.injectFault('callback', { malformedBody: true })
    // @ts-expect-error Only a fault of callbacks is for one subscription.
    emulator.injectFault('create', { status: 503 }, { subscriptionId: 1 })
  })
})
