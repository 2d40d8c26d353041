import type { Emulator, RecordedCallback } from 'notification-subscriber/emulator'
import { expectTypeOf, test } from 'vitest'

declare const emulator: Emulator

test('the emulator notifies with a type and a user', () => {
  // @ts-expect-error A notification is about a user.
  emulator.notify({ type: 'cxScoreUpdated' })
  // @ts-expect-error A delivered type is no category.
  emulator.notify({ type: 'x', username: 'alice', category: 'cxScoreUpdated' })
})

test('the emulator calls listeners with what their event has', () => {
  emulator.on('callback', (callback) => expectTypeOf(callback).toEqualTypeOf<RecordedCallback>())
  emulator.on('ended', (_, reason) => {
    expectTypeOf(reason).toEqualTypeOf<'unsubscribed' | 'replaced' | 'three-failures' | 'by-request'>()
  })
  // @ts-expect-error There is no such event.
  emulator.on('notified', () => {})
})

test('the emulator takes the faults that an endpoint or a callback can have', () => {
  // @ts-expect-error The emulator does not send the body of a callback's answer.
  emulator.injectFault('callback', { malformedBody: true })
  // @ts-expect-error Only a fault of callbacks is for one subscription.
  emulator.injectFault('create', { status: 503 }, { subscriptionId: 1 })
})
