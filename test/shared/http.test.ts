/** Whole addresses are tested where they are given: test/subscriptions/schemas.test.ts, test/client/options.test.ts. */
import { expect, test } from 'vitest'
import {
  callbackUrlProblem,
  headerName,
  headerValue,
  isOutcomeOpen,
  isSuccess,
  isTurnedAway,
  parsedUrl,
  urlProblem,
  withoutEndingSlashes,
  withoutQuery,
} from '../../src/shared/http.js'

test.each([
  ['https://a.example/b', 'https://a.example/b'],
  ['https://a.example/b?', 'https://a.example/b?…'],
  ['https://a.example/b?c=d?e', 'https://a.example/b?…'],
])('an address is shown without its query: %s', (url, shown) => {
  expect(withoutQuery(url)).toBe(shown)
})

test('an address with letters beyond ASCII is read as often as it is asked for', () => {
  // `URL.canParse` of Node 20 and 22 answers false from some thousand calls on.
  const hrefs = Array.from({ length: 20_000 }, () => parsedUrl('https://bücher.example/é')?.href)

  expect(new Set(hrefs)).toEqual(new Set(['https://xn--bcher-kva.example/%C3%A9']))
})

test.each(['', 'a.example', '/path', 'https://'])('%j is no absolute URL', (text) => {
  expect(parsedUrl(text)).toBeUndefined()
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

test.each([
  [200, 'success'],
  [299, 'success'],
  [300, 'no effect'],
  [409, 'no effect'],
  [429, 'turned away'],
  [499, 'no effect'],
  [500, 'open'],
  [501, 'no effect'],
  [502, 'open'],
  [503, 'turned away'],
  [504, 'open'],
  [505, 'no effect'],
  [507, 'open'],
  [511, 'no effect'],
  [520, 'open'],
  [599, 'open'],
])('the status %i: %s', (status, meaning) => {
  const meanings = [
    isSuccess(status) && 'success',
    isTurnedAway(status) && 'turned away',
    isOutcomeOpen(status) && 'open',
  ]
  expect(meanings.filter(Boolean)).toEqual(meaning === 'no effect' ? [] : [meaning])
})
