import fc from 'fast-check'
import { type CreateSubscriptionInput, InvalidRequestError, notificationTypes } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { fakeService, subscription } from '../support/fake-service.js'

/** Values that a service can be asked for, values that break an encoding, and everything in between. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      'a',
      'Z',
      '0',
      ',',
      '&',
      '=',
      '+',
      '%',
      ' ',
      '\t',
      '\r',
      '\n',
      ';',
      'ü',
      '\u0000',
      '😀',
      '\ud800',
    ),
  }),
)
const headerText = fc.string({
  unit: fc.constantFrom(
    'a',
    'Z',
    '7',
    '-',
    '_',
    '+',
    '%',
    '&',
    '=',
    ' ',
    ',',
    ';',
    ':',
    '"',
    '\u00e9',
    '\r',
    '\n',
  ),
})
const headerName = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'B', '-', '_', '1'), minLength: 1, maxLength: 8 }),
  fc.constantFrom(
    'token',
    'Token',
    'X-Region',
    '__proto__',
    'constructor',
    'username',
    'Host',
    'content-type',
    'authorization',
  ),
  anyText,
)
const pairs = fc.dictionary(headerName, fc.oneof(headerText, anyText), { maxKeys: 4 })
const input = fc.record(
  {
    notificationTypes: fc.array(fc.constantFrom(...notificationTypes), { maxLength: 4 }),
    usernames: fc.array(fc.oneof(fc.constantFrom('alice', 'bob', 'o’hara', 'user@example.com'), anyText), {
      maxLength: 4,
    }),
    callbackUrl: fc.oneof(
      fc.webUrl({ validSchemes: ['https'], withQueryParameters: true, withFragments: true }),
      fc.constantFrom(
        'https://app.example.com/a b',
        'http://app.example.com',
        'https://u:p@app.example.com',
        'nonsense',
      ),
    ),
    recreateIfExists: fc.boolean(),
    parameters: pairs,
    headers: pairs,
  },
  { requiredKeys: ['notificationTypes', 'usernames', 'callbackUrl'] },
)

const friendlyInput: fc.Arbitrary<CreateSubscriptionInput> = fc.record(
  {
    notificationTypes: fc.uniqueArray(fc.constantFrom(...notificationTypes), { minLength: 1 }),
    usernames: fc.uniqueArray(
      fc
        .string({ unit: 'grapheme', minLength: 1 })
        .filter((name) => !/,|\p{Cc}/u.test(name) && name.trim() === name),
      { minLength: 1, maxLength: 5 },
    ),
    callbackUrl: fc.webUrl({ validSchemes: ['https'], withQueryParameters: true }),
    recreateIfExists: fc.boolean(),
    parameters: fc.dictionary(
      fc.stringMatching(/^x-[a-z]{1,5}$/),
      fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/),
    ),
  },
  { requiredKeys: ['notificationTypes', 'usernames', 'callbackUrl'] },
)

describe('the wire encoding (interface 2.2 and 4.2)', () => {
  test('whatever is accepted decodes back to the same values; everything else is refused before it is sent', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(fc.oneof(friendlyInput, input), async (given) => {
        const service = fakeService()
        try {
          await service.client().createSubscription(given)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidRequestError)
          expect((error as InvalidRequestError).issues.length).toBeGreaterThan(0)
          expect(service.tokenRequests).toHaveLength(0)
          expect(service.calls).toHaveLength(0)
          return
        }
        accepted++
        const [call] = service.calls
        if (call === undefined) expect.fail('nothing was sent')
        const {
          notification_type,
          username,
          callback_url,
          recreateIfExists = undefined,
          ...parameters
        } = Object.fromEntries(new URLSearchParams(call.body))
        expect(notification_type?.split(',')).toEqual(given.notificationTypes)
        expect(username?.split(',')).toEqual(given.usernames)
        expect(callback_url).toBe(given.callbackUrl)
        expect(recreateIfExists).toBe(given.recreateIfExists?.toString())
        expect(parameters).toEqual({ ...given.parameters })
        for (const [name, value] of Object.entries(given.headers ?? {}))
          expect(call.headers.get(name)).toBe(value)
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(500)
  })

  test('what the service can take is accepted', async () => {
    await fc.assert(
      fc.asyncProperty(friendlyInput, async (given) => {
        await fakeService().client().createSubscription(given)
      }),
      { numRuns: 300 },
    )
  })

  test('an update decodes back to the same pairs, or is refused', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({ parameters: pairs, headers: pairs }, { requiredKeys: [] }),
        async (given) => {
          const service = fakeService()
          try {
            await service.client().updateSubscriptionParameters(5, given)
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidRequestError)
            expect(service.tokenRequests).toHaveLength(0)
            return
          }
          const [call] = service.calls
          expect(call?.method).toBe('PUT')
          expect(Object.fromEntries(new URLSearchParams(call?.body))).toEqual({ ...given.parameters })
          for (const [name, value] of Object.entries(given.headers ?? {}))
            expect(call?.headers.get(name)).toBe(value)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('input that is refused before anything is sent', () => {
  const problems: [string, object, PropertyKey[], string][] = [
    ['no types', { notificationTypes: [] }, ['notificationTypes'], 'at least one'],
    [
      'an unknown type',
      { notificationTypes: ['lowEnergyAgentOpened'] },
      ['notificationTypes', 0],
      'behavioral',
    ],
    ['a type twice', { notificationTypes: ['behavioral', 'behavioral'] }, ['notificationTypes', 1], 'twice'],
    ['no users', { usernames: [] }, ['usernames'], 'at least one'],
    ['a username with a comma', { usernames: ['ok', 'a,b'] }, ['usernames', 1], 'comma'],
    ['an empty username', { usernames: [''] }, ['usernames', 0], 'empty'],
    ['a username twice', { usernames: ['a', 'a'] }, ['usernames', 1], 'twice'],
    ['a username with white space around it', { usernames: [' a'] }, ['usernames', 0], 'white space'],
    ['a username with a line break inside', { usernames: ['a\nb'] }, ['usernames', 0], 'control'],
    ['half a surrogate pair', { usernames: ['a\ud800'] }, ['usernames', 0], 'surrogate'],
    ['an http: callback URL', { callbackUrl: 'http://app.example.com' }, ['callbackUrl'], 'https:'],
    ['a relative callback URL', { callbackUrl: '/notifications' }, ['callbackUrl'], 'absolute'],
    [
      'a callback URL with a line break',
      { callbackUrl: 'https://app.example\n.com' },
      ['callbackUrl'],
      'white space',
    ],
    [
      'a callback URL with a password',
      { callbackUrl: 'https://u:p@app.example.com' },
      ['callbackUrl'],
      'password',
    ],
    ['a string for a boolean', { recreateIfExists: 'true' }, ['recreateIfExists'], 'boolean'],
    ['a value with a line break', { parameters: { token: 'a\r\nb' } }, ['parameters', 'token'], 'value'],
    ['a value beyond ASCII', { parameters: { token: 'é' } }, ['parameters', 'token'], 'ASCII'],
    ['a value that is undefined', { parameters: { token: undefined } }, ['parameters', 'token'], 'string'],
    [
      'a name that is no header name',
      { parameters: { 'my token': 'a' } },
      ['parameters', 'my token'],
      'name',
    ],
    [
      'a name that is a form field',
      { parameters: { Username: 'a' } },
      ['parameters', 'Username'],
      'reserved',
    ],
    [
      'a parameter that breaks callbacks',
      { parameters: { 'Content-Length': '1' } },
      ['parameters', 'Content-Length'],
      'reserved',
    ],
    [
      'a header of the request itself',
      { headers: { Authorization: 'a' } },
      ['headers', 'Authorization'],
      'reserved',
    ],
    [
      'a name twice in different case',
      { parameters: { token: 'a', Token: 'b' } },
      ['parameters', 'Token'],
      'twice',
    ],
    [
      'a name in both kinds',
      { parameters: { token: 'a' }, headers: { TOKEN: 'b' } },
      ['headers', 'TOKEN'],
      'both',
    ],
    [
      '__proto__ as a name',
      { parameters: JSON.parse('{"__proto__":"a"}') },
      ['parameters', '__proto__'],
      'prototype',
    ],
    ['a field with a typing error', { callbackURL: 'https://app.example.com' }, [], 'callbackURL'],
  ]
  test.each(problems)('%s', async (_name, change, path, words) => {
    const service = fakeService()
    const error = await service
      .client()
      .createSubscription({ ...subscription, ...change })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(InvalidRequestError)
    const { issues, message } = error as InvalidRequestError
    expect(issues.map((issue) => issue.path)).toContainEqual(path)
    expect(message).toContain(words)
    expect(service.tokenRequests).toHaveLength(0)
  })

  test('every problem is listed at once', async () => {
    const error = await fakeService()
      .client()
      .createSubscription({
        notificationTypes: [],
        usernames: ['a,b', ''],
        callbackUrl: 'ftp://x',
        parameters: { Host: '' },
      })
      .catch((reason: unknown) => reason)
    expect((error as InvalidRequestError).issues.map(({ path }) => path.join('.'))).toEqual([
      'notificationTypes',
      'usernames.0',
      'usernames.1',
      'callbackUrl',
      'parameters.Host',
    ])
  })

  test('a value that is refused is not shown', async () => {
    const error = await fakeService()
      .client()
      .createSubscription({ ...subscription, parameters: { token: 's3cret\n' } })
      .catch((reason: unknown) => reason)
    expect(JSON.stringify(error) + String(error)).not.toContain('s3cret')
  })

  test.each([undefined, null, 42, 'text', [], () => {}])('no object at all: %s', async (given) => {
    const service = fakeService()
    const client = service.client()
    await expect(client.createSubscription(given as never)).rejects.toBeInstanceOf(InvalidRequestError)
    await expect(client.tryCreateSubscription(given as never)).rejects.toBeInstanceOf(InvalidRequestError)
    await expect(client.updateSubscriptionParameters(1, given as never)).rejects.toBeInstanceOf(
      InvalidRequestError,
    )
    expect(service.tokenRequests).toHaveLength(0)
  })

  test.each([undefined, null, '12', 1.5, Number.NaN, 2 ** 53])(
    'a subscription id that is none: %s',
    async (id) => {
      const service = fakeService()
      await expect(service.client().unsubscribe(id as never)).rejects.toBeInstanceOf(InvalidRequestError)
      expect(service.tokenRequests).toHaveLength(0)
    },
  )

  test.each([
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { timeoutMs: 2 ** 31 },
    { signal: 'x' },
    { timeout: 5 },
    7,
  ])('call options that cannot work: %j', async (options) => {
    const service = fakeService()
    const client = service.client()
    await expect(client.createSubscription(subscription, options as never)).rejects.toBeInstanceOf(
      InvalidRequestError,
    )
    await expect(client.getAccessToken(options as never)).rejects.toBeInstanceOf(InvalidRequestError)
    expect(service.tokenRequests).toHaveLength(0)
  })
})
