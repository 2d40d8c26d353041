import { expect, test } from 'vitest'
import { excerpt, messageOf } from '../../src/shared/text.js'

test.each([
  ['short', 5, 'short'],
  ['longer', 5, 'longe…'],
  ['two\r\n\tlines', 20, 'two lines'],
  [' '.repeat(100), 5, ' …'],
])('an excerpt of %j in %i characters', (text, maxLength, shown) => {
  expect(excerpt(text, maxLength)).toBe(shown)
})

test.each([
  [new Error('why'), 'why'],
  [new TypeError('', { cause: new Error('why') }), 'why'],
  [undefined, 'undefined'],
  [{ message: 7 }, '7'],
  [{ toString: () => Promise.reject }, 'no message'],
  [new Error('x'.repeat(1_000)), `${'x'.repeat(200)}…`],
])('anything that is thrown has a message: %o', (thrown, message) => {
  expect(messageOf(thrown)).toBe(message)
})
