import { expect, test } from 'vitest'
import { backoffMs } from '../../src/shared/backoff.js'

test('each failure doubles the wait, up to the longest', () => {
  expect(
    [1, 2, 3, 6, 7, 2_000].map((failures) => backoffMs(failures, { firstMs: 1_000, maxMs: 60_000 })),
  ).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000])
})
