import { expect, test } from 'vitest'
import { type InjectedFault, injectedInWords } from '../../src/emulator/faults.js'
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

test.each<[InjectedFault, string]>([
  [
    { operation: 'callback', fault: { status: 503 }, times: 2, subscriptionId: 3 },
    'The next 2 callbacks of subscription 3: status 503',
  ],
  [
    { operation: 'create', fault: { delayMs: 2_000 }, times: Number.POSITIVE_INFINITY },
    'Every create request: answer 2 s late',
  ],
  [
    { operation: 'token', fault: { reset: 'after-processing' }, times: 1 },
    'The next token request: answer lost',
  ],
  [
    { operation: 'update', fault: { reset: 'before-processing' }, times: 1 },
    'The next update request: connection lost at once',
  ],
  [{ operation: 'create', fault: { malformedBody: true }, times: 1 }, 'The next create request: broken body'],
])('an injected fault says which answers fail, and how: %j', (injected, sentence) => {
  expect(injectedInWords(injected)).toBe(sentence)
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
