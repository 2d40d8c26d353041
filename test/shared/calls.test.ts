import { expect, test, vi } from 'vitest'
import { callSafely, InFlight } from '../../src/shared/calls.js'

test.each([
  [
    'throws',
    () => {
      throw 'why'
    },
  ],
  ['rejects', () => Promise.reject('why')],
])('what a function %s goes to the handler of failures, whose result is awaited', async (_name, call) => {
  const events: unknown[] = []
  await callSafely(call, async (error) => {
    await undefined
    events.push(error)
  })
  expect(events).toEqual(['why'])
})

test('a function that works is called at once, and awaited', async () => {
  const onFailure = vi.fn()
  let isDone = false
  const called = callSafely(async () => {
    await undefined
    isDone = true
  }, onFailure)
  expect(isDone).toBe(false)
  await called
  expect(isDone).toBe(true)
  expect(onFailure).not.toHaveBeenCalled()
})

test('a wait for calls in flight ends when no call is left', async () => {
  const flights = new InFlight()
  await flights.whenIdle()
  flights.begin()
  flights.begin()
  const onIdle = vi.fn()
  const waiting = flights.whenIdle().then(onIdle)
  flights.end()
  await undefined
  expect(flights.count).toBe(1)
  expect(onIdle).not.toHaveBeenCalled()
  flights.end()
  await waiting
})
