import { expect, test } from 'vitest'
import { durationInWords, isFailed, toneOf } from '../../src/emulator/words.js'

test.each([
  [340.4, '340 ms'],
  [1_240, '1.2 s'],
  [89_600, '90 s'],
  [3_599_000, '60 minutes'],
  [72 * 3_600_000, '3 days'],
])('a duration of %i ms is "%s"', (durationMs, words) => {
  expect(durationInWords(durationMs)).toBe(words)
})

test.each([
  ['waiting', false, {}],
  ['good', false, { status: 204, durationMs: 1 }],
  ['bad', true, { status: 500, durationMs: 1 }],
  ['bad', true, { durationMs: 1 }],
  ['neutral', false, { status: 409, durationMs: 1, refusal: { code: 'duplicate_subscription' } }],
  ['neutral', true, { status: 409, durationMs: 1, refusal: { code: 'partial_overlap' } }],
  ['neutral', true, { status: 409, error: 'a callback that was answered 409', durationMs: 1 }],
] as const)('the tone is %s, and that it failed %s, of %j', (tone, failed, entry) => {
  expect([toneOf(entry), isFailed(entry)]).toEqual([tone, failed])
})
