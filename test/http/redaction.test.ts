/** What a server sends back is shown only if no secret of the request is in it, however the server wrote that. */
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

const blank = '[redacted: it repeats a secret of the request]'

describe('a text is blanked that shows a secret', () => {
  test.each([
    ['wherever it stands', 's3cret', 'a s3cret, s3cret and s3cret'],
    ['of four characters', '1234', 'x1234y'],
    ['in JSON', 'a"b\\c', '{"got":"a\\"b\\\\c"}'],
    ['in JSON in JSON', 'a"b\\c', '"{\\"got\\":\\"a\\\\\\"b\\\\\\\\c\\"}"'],
    ['with unicode escapes', '<key>/&', 'got \\u003ckey\\u003E\\/\\u0026.'],
    ['with escaped unicode escapes', '<key>/&', 'got \\\\u003ckey\\\\\\u003E/\\\\u0026.'],
    ['with surrogate pairs as escapes', 'kéy😀!', 'got k\\u00e9y\\ud83d\\ude00!'],
    ['in a form', 'a b&c+d', 'got=a+b%26c%2Bd&x=y'],
    ['in a URL', 'a b/é', 'got a%20b%2F%C3%A9?'],
    ['in a URL in lower case', 'a b/é', 'got a%20b%2f%c3%a9?'],
    ['in a URL in a URL', 'a b/é', 'got a%2520b%25252F%25C3%25A9?'],
    ['in a URL in JSON in HTML', 'a"b/é', 'got a&amp;#92;u00252522b%2F%C3%A9?'],
    ['in HTML', '<a>&"b\'c', 'got &lt;a&gt;&amp;&quot;b&apos;c.'],
    ['in HTML in capitals', '<a>&"b', 'got &LT;a&GT;&AMP;&QUOT;b.'],
    ['in HTML in HTML', '<a>&"b', 'got &amp;lt;a&amp;amp;gt;&amp;amp;&amp;quot;b.'],
    ['in HTML by numbers', '"a"é😀', 'got &#34;a&#x22;&#233;&#x1F600;.'],
    ['with the last character that there is', 'key\u{10ffff}', 'got key&#1114111;'],
    ['with escaped and bare pluses', 'a+b+c+d', 'got a+b+c\\u002bd&a&#43;b+c'],
    ['with numbers that are no character', 'secret', 'got sec&#1114112;ret&#1114111;'],
    ['with a percent sign of its own', '100%ok%', 'got 100%ok%'],
    ['with an escaped percent sign of its own', '100%ok%', 'got 100%25ok%25'],
    ['with an escaped percent sign before what then looks like an escape', '100%ok%', 'got 100%25ok%2541'],
    ['with an ampersand of its own', 'a&b&c', 'got a&b&c'],
    ['with one of its own ampersands escaped', 'a&b&c', 'got a&amp;b&c'],
    ['beyond ASCII', 'pässwörd', 'ä pässwörd ö'],
    ['with a plus for a space', 'a b+c d', 'got a+b%2bc+d'],
    ['with spaces for its pluses', 'a b+c d', 'got a b c d'],
    ['after what looks like the beginning of an escape', '41secret', 'got %41secret'],
  ])('%s', async (_name, password, echo) => {
    expect(await shown(echo, { password })).toBe(blank)
  })

  test('one of several', async () => {
    const parameters = { first: 'long-secret-value', second: 'other-value' }
    expect(await shown('x other%2dvalue', { parameters })).toBe(blank)
    expect(await shown('x long-secret-value', { parameters })).toBe(blank)
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
    'you sent s3cr',
    'you sent s3cr/t&"value',
    'you sent s3cr%2Ft%26',
    'you sent s3cr%2Ft%2',
    'you sent s3cr%2Ft%',
    'you sent s3cr/t&am',
    'you sent s3cr/t&',
    'you sent s3cr/t&amp;&#3',
    'you sent s3cr/t\\u002',
    'you sent s3cr/t\\u',
    's3cr',
    's3cr/t&"value" and s3cr',
  ])('is blanked: %s', async (echo) => {
    expect(await shown(echo, { password, breaksOff: true })).toBe(blank)
  })

  test.each(['you sent s3c', 's3cr is how it began'])('is left as it is: %s', async (echo) => {
    expect(await shown(echo, { password, breaksOff: true })).toBe(echo)
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
  await expect(failed).rejects.toMatchObject({ body: blank })
  const [call] = service.calls
  expect(call?.body).toBe('token=first-token')
  expect(call?.headers.get('UserData')).toBe('first-data')
})
