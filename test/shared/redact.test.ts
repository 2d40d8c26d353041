/** What a server sends back is shown only if no secret of the request is in it, however the server wrote that. */
import type { FetchResponseLike } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription } from '../support/fake-service.js'
import { heapUsed } from '../support/heap.js'
import { everythingShownBy } from '../support/secrets.js'

/** What `error.body` shows of an answer to a request with this password and these parameters. */
async function shown(
  echo: string,
  {
    password = 'unrelated',
    parameters = {},
    breaksOff = false,
  }: { password?: string; parameters?: Record<string, string>; breaksOff?: boolean },
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
  const call = client.updateSubscriptionParameters(1, { parameters: { flag: 'Q7', ...parameters } })
  const error = await failureOf(call)
  return (error as { body: string }).body
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
const base64url = (text: string) => Buffer.from(text).toString('base64url')

const blank = '[redacted: it repeats a secret of the request]'

describe('a text that shows a secret is blanked', () => {
  test.each([
    ['wherever it stands', 's3cret', 'a s3cret, s3cret and s3cret'],
    ['in JSON', 'a"b\\c', '{"got":"a\\"b\\\\c"}'],
    ['with unicode escapes', '<key>/&', 'got \\u003ckey\\u003E\\/\\u0026.'],
    ['with surrogate pairs as escapes', 'kéy😀!', 'got k\\u00e9y\\ud83d\\ude00!'],
    ['in a form', 'a b&c+d', 'got=a+b%26c%2Bd&x=y'],
    ['in a URL in lower case', 'a b/é', 'got a%20b%2f%c3%a9?'],
    ['with a percent sign of its own', '100%ok%', 'got 100%ok%'],
    ['with pluses for spaces, and no percent sign', 'a b c', 'got a+b+c'],
    ['after what looks like the beginning of an escape', '41secret', 'got %41secret'],
    ['of a single character', '!', 'what!'],
    ['of three characters, escaped', 'a+b', 'got xa%2Bby'],
    ['of which every character is a byte in a URL', 'key/', 'got %6b%65%79%2F'],
    ['in base64', 'key?', `got ${base64('key?')}`],
    ['in base64url', 'ÿþ?>?', `got ${base64url('ÿþ?>?')}`],
    ['in base64 before other bytes', 'key?', `got ${base64('key?\xff\xff')}`],
    ['in base64 in a form', 'sécr~~et??>', `got=${encodeURIComponent(base64('sécr~~et??>'))}`],
  ])('%s', async (_name, password, echo) => {
    expect(await shown(echo, { password })).toBe(blank)
  })
})

test.each([
  ['what has seven characters of a longer secret', 'secret-value', 'got secret- and t-value'],
  ['what is like the base64 of a short secret', 'a+b', `got ${base64('a+b')}`],
  ['what shares most of the base64 of a secret', 'abcdef', `got ${base64('abcdeg')}`],
  ['what is like a secret', 'secret', 'got Secret, secre and se cret'],
  ['what has escapes but no secret', 'secret', '{"a":"\\u0022\\\\","b":"%41&amp;&#65;+\\n"}'],
])('left as it is: %s', async (_name, password, echo) => {
  expect(await shown(echo, { password })).toBe(echo)
})

describe('a body that breaks off inside a secret', () => {
  const password = 's3cr/t&"value"'

  test.each([
    'you sent s3cr',
    'you sent s3cr/t&"value',
    'you sent s3cr%2Ft%26',
    'you sent s3cr%2Ft%',
    'you sent s3cr/t&',
    'you sent s3cr/t\\u002',
    's3cr/t&"value" and s3cr',
  ])('is blanked: %s', async (echo) => {
    expect(await shown(echo, { password, breaksOff: true })).toBe(blank)
  })

  test.each(['you sent s3c', 's3cr is how it began'])('is left as it is: %s', async (echo) => {
    expect(await shown(echo, { password, breaksOff: true })).toBe(echo)
  })
})

describe('a body of more than 64 KiB', () => {
  const kept = 'x'.repeat(64 * 1024)

  test('is not searched beyond that', async () => {
    expect(await shown(`${kept}s3cret`, { password: 's3cret' })).toBe(kept)
  })

  test.each(['s3cr', 's3cret/val'])(
    'is blanked if the cut is inside a secret, behind %s',
    async (beginning) => {
      const echo = `${kept.slice(beginning.length)}s3cret/value`
      expect(await shown(echo, { password: 's3cret/value' })).toBe(blank)
    },
  )
})

describe('the query of the callback URL', () => {
  const callbackUrl = 'https://app.example.com/n?key=s3cret-of-the-route'
  const errorAfter = (answer: () => Response) => {
    const service = fakeService()
    service.onCall = answer
    const client = service.client({ retry: false })
    return client.createSubscription({ ...subscription, callbackUrl }).catch((reason: unknown) => reason)
  }

  test('is blanked in a body that repeats it', async () => {
    const error = await errorAfter(() => new Response(`no answer from ${callbackUrl}`, { status: 400 }))
    expect(error).toMatchObject({ code: 'API', body: blank })
  })

  test.each([409, 502])('is left out of message and request after a %s', async (status) => {
    const error = await errorAfter(() => new Response('', { status }))
    expect(error).toMatchObject({ request: { callbackUrl: 'https://app.example.com/n?…' } })
    expectNothingOf('s3cret-of-the-route', error)
  })

  test.each([
    'HTTPS://app.example.com/n?key=s3cret-of-the-route',
    'https://app.example.com/n?key={{s3cret-of-the-route}}',
    'http://app.example.com/n?key=s3cret-of-the-route',
    'https://app.example.com/n?key=s3cret-of-the-route#',
  ])('is left out of what is wrong with the URL: %s', async (wrong) => {
    const client = fakeService().client()
    const call = client.createSubscription({ ...subscription, callbackUrl: wrong })
    const error = await failureOf(call)
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', issues: [{ path: ['callbackUrl'] }] })
    expectNothingOf('s3cret-of-the-route', error)
  })

  test('cannot be taken from an error for another request', async () => {
    const client = fakeService().client()
    const call = client.createSubscription({ ...subscription, callbackUrl: 'https://app.example.com/n?…' })
    await expect(call).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  })
})

test('an error keeps only the shown part of a long body in memory', async () => {
  const service = fakeService()
  service.onCall = () => new Response('€'.repeat(349_000), { status: 400 })
  const client = service.client({ retry: false })
  await client.unsubscribe(1).catch(() => {})
  const before = heapUsed()
  const errors: unknown[] = []
  for (let id = 0; id < 8; id++) errors.push(await client.unsubscribe(id).catch((reason: unknown) => reason))
  // Each shows 128 KiB of a text of 700 kB.
  expect(heapUsed() - before).toBeLessThan(8 * 300_000)
  expect(errors.at(-1)).toMatchObject({ body: '€'.repeat(64 * 1024) })
})

function expectNothingOf(secret: string, error: unknown): void {
  expect(everythingShownBy(error)).not.toContain(secret)
}

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
