/** Whole addresses are tested where they are given: test/subscriptions/schemas.test.ts, test/client/options.test.ts. */
import { expect, test } from 'vitest'
import {
  callbackUrlProblem,
  headerName,
  headerValue,
  urlProblem,
  withoutEndingSlashes,
  withoutQuery,
} from '../../src/shared/http-syntax.js'

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

test.each([
  'https://user:pa${secret@a.example/b',
  'https://user:{{secret}}@a.example/b',
  'https:\\\\user:{secret}@a.example/b',
  ' https://user:<secret>@a.example/b',
  'https:user:{secret}@a.example/b',
  'user:{secret}@a.example/b',
  'https://user:{secret}@a b',
])('no problem of %s shows the password', (url) => {
  for (const problem of [urlProblem(url, false), callbackUrlProblem(url, false)]) {
    expect(problem).toMatch(/^must not contain a user name or password/)
  }
})

test.each(['https://a.example/${b?key=secret', 'https://a.example/{{b?key=secret', 'https://${a?key=secret'])(
  'no problem of %s shows the query',
  (url) => {
    expect(callbackUrlProblem(url, false)).toMatch(/^contains `(?:\$\{|\{\{)[ab]`, which was never filled in/)
  },
)

test('an @ in path, query or fragment is no user name', () => {
  for (const url of ['https://a.example/@b', 'https://a.example?b=c@d', 'https://a.example']) {
    expect(urlProblem(url, false)).toBeUndefined()
  }
})
