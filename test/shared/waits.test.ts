import { expect, onTestFinished, test, vi } from 'vitest'
import { backoffMs, settlesWithin, withTimeLimit } from '../../src/shared/waits.js'

test('work that settles in time settles the wait, and leaves no timer', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const fails = () => {
    throw new Error('failed')
  }
  await expect(withTimeLimit(10, async () => 'done')).resolves.toBe('done')
  await expect(withTimeLimit(10, fails)).rejects.toThrow('failed')
  expect(vi.getTimerCount()).toBe(0)
})

test('longer work is given up, and its later failure is no unhandled rejection', async () => {
  const work = new Promise<never>((_, reject) => setTimeout(reject, 20, new Error('too late')))
  await expect(withTimeLimit(1, () => work)).rejects.toThrow('no answer within 1 ms')
  await expect(settlesWithin(10_000, work)).resolves.toBe(true)
})

test('each failure doubles the wait, up to the longest', () => {
  expect(
    [1, 2, 3, 6, 7, 2_000].map((failures) => backoffMs(failures, { firstMs: 1_000, maxMs: 60_000 })),
  ).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000])
})
