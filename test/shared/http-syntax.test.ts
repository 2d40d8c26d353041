/** Whole addresses are tested where they are given: test/subscriptions/schemas.test.ts, test/client/options.test.ts. */
import { expect, test } from 'vitest'
import { headerName, headerValue, withoutEndingSlashes, withoutQuery } from '../../src/shared/http-syntax.js'

test.each([
  ['https://a.example/b', 'https://a.example/b'],
  ['https://a.example/b?', 'https://a.example/b?…'],
  ['https://a.example/b?c=d?e', 'https://a.example/b?…'],
])('an address is shown without its query: %s', (url, shown) => {
  expect(withoutQuery(url)).toBe(shown)
})

test.each([
  ['/a//', '/a'],
  ['//a/b', '//a/b'],
  ['///', ''],
  ['', ''],
])('slashes at the end of %j are left out', (path, rest) => {
  expect(withoutEndingSlashes(path)).toBe(rest)
})

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
