import { expect, test, vi } from 'vitest'
import { InFlight } from '../../src/shared/in-flight.js'

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
