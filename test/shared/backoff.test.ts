import { expect, test } from 'vitest'
import { backoffMs, jitteredBackoffMs } from '../../src/shared/backoff.js'

const backoff = { firstMs: 1_000, maxMs: 60_000 }

test('each failure doubles the wait, up to the longest', () => {
  expect([1, 2, 3, 6, 7, 2_000].map((failures) => backoffMs(failures, backoff))).toEqual([
    1_000, 2_000, 4_000, 32_000, 60_000, 60_000,
  ])
})

test('jitter takes any wait up to the backoff', () => {
  const waits = Array.from({ length: 200 }, () => jitteredBackoffMs(3, backoff))
  expect(Math.max(...waits)).toBeLessThanOrEqual(4_000)
  expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(1_000)
})
