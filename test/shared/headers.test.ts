import { expect, test } from 'vitest'
import { headerName, headerValue } from '../../src/shared/headers.js'

test.each([
  ["!#$%&'*+-.^_`|~aZ9", true],
  ['', false],
  ['a b', false],
  ['a:', false],
  ['é', false],
])('%j is the name of a header: %j', (name, isOne) => {
  expect(headerName.test(name)).toBe(isOne)
})

test.each([
  ['', true],
  ['a b\tc', true],
  [' a', false],
  ['a\t', false],
  ['a\nb', false],
  ['é', false],
])('%j is the value of a header: %j', (value, isOne) => {
  expect(headerValue.test(value)).toBe(isOne)
})
