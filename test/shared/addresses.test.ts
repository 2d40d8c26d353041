/** Whole addresses are tested where they are given: test/subscriptions/schemas.test.ts, test/client/options.test.ts. */
import { expect, test } from 'vitest'
import { callbackUrlProblem, parsedUrl, urlProblem, withoutQuery } from '../../src/shared/addresses.js'

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

test.each([
  'https://user:pa${secret@a.example/b',
  'https://user:{{secret}}@a.example/b',
  'https:\\\\user:{secret}@a.example/b',
  ' https://user:<secret>@a.example/b',
  'https:user:{secret}@a.example/b',
  'user:{secret}@a.example/b',
  'https://user:{secret}@a b',
])('no problem of %s shows the password', (url) => {
  for (const problem of [urlProblem(url), callbackUrlProblem(url)]) {
    expect(problem).toMatch(/^must not contain a user name or password/)
  }
})

test.each(['https://a.example/${b?key=secret', 'https://a.example/{{b?key=secret', 'https://${a?key=secret'])(
  'no problem of %s shows the query',
  (url) => {
    expect(callbackUrlProblem(url)).toBe('contains a placeholder, which was never filled in')
  },
)

test('an @ in path, query or fragment is no user name', () => {
  for (const url of ['https://a.example/@b', 'https://a.example?b=c@d', 'https://a.example']) {
    expect(urlProblem(url)).toBeUndefined()
  }
})
