/** design.md, "Requests": what a server sends back is shown without the request's secrets, however it wrote them. */
import type { FetchResponseLike } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { fakeService } from '../support/fake-service.js'

/** What `error.body` shows of an answer to a request with this password and these parameters. */
async function shown(
  echo: string,
  {
    password = 'unrelated',
    parameters = {},
    breaksOff = false,
  }: {
    password?: string
    parameters?: Record<string, string>
    breaksOff?: boolean
  },
): Promise<string> {
  const answer: FetchResponseLike = {
    status: 400,
    body: (async function* () {
      yield new TextEncoder().encode(echo)
      if (breaksOff) throw new Error('terminated')
    })(),
    text: () => expect.fail('the body is a stream'),
  }
  const client = fakeService().client({ auth: { username: 'user', password }, fetch: async () => answer })
  const call = client.updateSubscriptionParameters(1, { parameters: { flag: 'on', ...parameters } })
  const error = await call.catch((reason: unknown) => reason)
  return (error as { body: string }).body
}

describe('a secret is blanked', () => {
  test.each([
    [
      'wherever it stands',
      's3cret',
      'a s3cret, s3cret and s3cret',
      'a [redacted], [redacted] and [redacted]',
    ],
    ['of four characters, and more than once', '1234', '1234-1234', '[redacted]-[redacted]'],
    ['in JSON', 'a"b\\c', '{"got":"a\\"b\\\\c"}', '{"got":"[redacted]"}'],
    ['in JSON in JSON', 'a"b\\c', '"{\\"got\\":\\"a\\\\\\"b\\\\\\\\c\\"}"', '"{\\"got\\":\\"[redacted]\\"}"'],
    ['with unicode escapes', '<key>/&', 'got \\u003ckey\\u003E\\/\\u0026.', 'got [redacted].'],
    ['with escaped unicode escapes', '<key>/&', 'got \\\\u003ckey\\\\\\u003E/\\\\u0026.', 'got [redacted].'],
    ['with surrogate pairs as escapes', 'kéy😀!', 'got k\\u00e9y\\ud83d\\ude00!', 'got [redacted]'],
    ['in a form', 'a b&c+d', 'got=a+b%26c%2Bd&x=y', 'got=[redacted]&x=y'],
    ['in a URL', 'a b/é', 'got a%20b%2F%C3%A9?', 'got [redacted]?'],
    ['in a URL in lower case', 'a b/é', 'got a%20b%2f%c3%a9?', 'got [redacted]?'],
    ['in a URL in a URL', 'a b/é', 'got a%2520b%25252F%25C3%25A9?', 'got [redacted]?'],
    ['in HTML', '<a>&"b\'c', 'got &lt;a&gt;&amp;&quot;b&apos;c.', 'got [redacted].'],
    ['in HTML in capitals', '<a>&"b', 'got &LT;a&GT;&AMP;&QUOT;b.', 'got [redacted].'],
    ['in HTML in HTML', '<a>&"b', 'got &amp;lt;a&amp;amp;gt;&amp;amp;&amp;quot;b.', 'got [redacted].'],
    ['in HTML by numbers', '"a"é😀', 'got &#34;a&#x22;&#233;&#x1F600;.', 'got [redacted].'],
    ['with the last character that there is', 'key\u{10ffff}', 'got key&#1114111;', 'got [redacted]'],
    ['with escaped and bare pluses', 'a+b+c+d', 'got a+b+c\\u002bd&a&#43;b+c+d', 'got [redacted]&[redacted]'],
    [
      'with numbers that are no character',
      'secret',
      'got sec&#1114112;ret&#1114111;',
      'got [redacted]&#1114111;',
    ],
    ['with a percent sign of its own', '100%ok%', 'got 100%ok%, 100%25ok%25', 'got [redacted], [redacted]'],
    ['with an ampersand of its own', 'a&b&c', 'got a&b&c, a&amp;b&c', 'got [redacted], [redacted]'],
    ['beyond ASCII', 'pässwörd', 'ä pässwörd ö', 'ä [redacted] ö'],
    ['with a plus for a space', 'a b+c d', 'got a+b%2bc+d and a b c d', 'got [redacted] and [redacted]'],
  ])('%s', async (_name, password, echo, expected) => {
    expect(await shown(echo, { password })).toBe(expected)
  })

  test('and a longer one before one that is part of it', async () => {
    const parameters = { short: 'secret', long: 'long-secret-value', other: 'secret-value' }
    expect(await shown('long-secret-value, secret-value, secret', { parameters })).toBe(
      '[redacted], [redacted], [redacted]',
    )
  })

  test('and one that overlaps with another, or touches it', async () => {
    const parameters = { first: 'abcdef', second: 'defghi' }
    expect(await shown('x%61bcdef%67hiy', { parameters })).toBe('x[redacted]y')
    expect(await shown('x%61bcdefghiy', { parameters })).toBe('x[redacted]y')
    expect(await shown('xabcdefghiy', { parameters })).toBe('x[redacted]y')
    expect(await shown('x%61bcdef%64efghiy', { parameters })).toBe('x[redacted][redacted]y')
    expect(await shown('%64efghi %61bcdef', { parameters })).toBe('[redacted] [redacted]')
  })
})

describe('left as it is', () => {
  test.each([
    ['a value of three characters, which may be anywhere', '123', 'got 123 of 1234'],
    ['what is like a secret', 'secret', 'got Secret, secre and se cret'],
    ['what has escapes but no secret', 'secret', '{"a":"\\u0022\\\\","b":"%41&amp;&#65;+\\n"}'],
    ['an empty body', 'secret', ''],
  ])('%s', async (_name, password, echo) => {
    expect(await shown(echo, { password })).toBe(echo)
  })
})

describe('a body that breaks off inside a secret', () => {
  const password = 's3cr/t&"value"'

  test.each([
    ['you sent s3cr', 'you sent [redacted]'],
    ['you sent s3cr/t&"value', 'you sent [redacted]'],
    ['you sent s3cr%2Ft%26', 'you sent [redacted]'],
    ['you sent s3cr%2Ft%2', 'you sent [redacted]'],
    ['you sent s3cr%2Ft%', 'you sent [redacted]'],
    ['you sent s3cr/t&am', 'you sent [redacted]'],
    ['you sent s3cr/t&', 'you sent [redacted]'],
    ['you sent s3cr/t&amp;&#3', 'you sent [redacted]'],
    ['you sent s3cr/t\\u002', 'you sent [redacted]'],
    ['you sent s3cr/t\\u', 'you sent [redacted]'],
    ['s3cr', '[redacted]'],
    ['you sent s3c', 'you sent s3c'],
    ['s3cr is how it began', 's3cr is how it began'],
    ['s3cr/t&"value" and s3cr', '[redacted] and [redacted]'],
  ])('%s', async (echo, expected) => {
    expect(await shown(echo, { password, breaksOff: true })).toBe(expected)
  })

  test('while a whole body may well end like the beginning of one', async () => {
    expect(await shown('you sent s3cr', { password })).toBe('you sent s3cr')
  })
})

test('what is sent, and blanked, is what was given, even if the caller changes it meanwhile', async () => {
  const service = fakeService()
  service.onCall = ({ body, headers }) =>
    new Response(`${new URLSearchParams(body).get('token')} ${headers.get('UserData')}`, { status: 400 })
  const parameters = { token: 'first-token' }
  const headers = { UserData: 'first-data' }
  const failed = service.client().updateSubscriptionParameters(1, { parameters, headers })
  parameters.token = 'second-token'
  headers.UserData = 'second-data'
  await expect(failed).rejects.toMatchObject({ body: '[redacted] [redacted]' })
  const [call] = service.calls
  expect(call?.body).toBe('token=first-token')
  expect(call?.headers.get('UserData')).toBe('first-data')
})
