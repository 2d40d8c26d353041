import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Strays } from '../../src/keeper/strays.js'
import { lateCallbacksMs, strayPatienceMs } from '../../src/keeper/timing.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a late callback of a subscription that was ended is no stray, however many were ended since', () => {
  const strays = new Strays()
  for (let id = 1; id <= 10_000; id++) strays.hasEnded(id)
  vi.advanceTimersByTime(lateCallbacksMs - 1)
  strays.see(1)
  expect(strays.hasCandidate(performance.now() + strayPatienceMs)).toBe(false)
  vi.advanceTimersByTime(1)
  // They are forgotten by then.
  for (let id = 20_001; id <= 40_000; id++) strays.hasEnded(id)
  strays.see(2)
  expect(strays.hasCandidate(performance.now() + strayPatienceMs)).toBe(true)
})
