import fc from 'fast-check'
import { type CreateSubscriptionInput, InvalidRequestError, notificationTypes } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { fakeService } from '../support/fake-service.js'
import { tries } from '../support/random-runs.js'

/** Values that a service can be asked for, values that break an encoding, and everything in between. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...`aZ0,&=+% \t\r\n;!'()*~ü\u0000😀`, '\ud800') }),
)
const headerText = fc.string({ unit: fc.constantFrom(...'aZ7-_+%&= ,;:"é\r\n') })
const headerName = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'B', '-', '_', '1'), minLength: 1, maxLength: 8 }),
  fc.constantFrom('token', 'Token', 'X-Region', 'constructor', 'username'),
  fc.constantFrom('Host', 'content-type', 'authorization'),
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
    // As the URL parser writes it: any other spelling is refused.
    callbackUrl: fc
      .webUrl({ validSchemes: ['https'], withQueryParameters: true })
      .map((url) => new URL(url).href),
    recreateIfExists: fc.boolean(),
    parameters: fc.dictionary(
      fc.stringMatching(/^x-[a-z]{1,5}$/),
      fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/),
    ),
  },
  { requiredKeys: ['notificationTypes', 'usernames', 'callbackUrl'] },
)

/** And whether the service takes it in any case. */
const anyInput = fc.oneof(
  friendlyInput.map((given) => [given, true] as const),
  input.map((given) => [given, false] as const),
)

describe('the wire encoding (docs/service.md, Resources)', () => {
  test('accepted values decode back to the same values; all others are refused before they are sent', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(anyInput, async ([given, isTaken]) => {
        const service = fakeService()
        try {
          await service.client().createSubscription(given)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidRequestError)
          expect(isTaken).toBe(false)
          expect((error as InvalidRequestError).issues.length).toBeGreaterThan(0)
          expect(service.tokenRequests).toHaveLength(0)
          expect(service.calls).toHaveLength(0)
          return
        }
        accepted++
        const [call] = service.calls
        if (call === undefined) expect.fail('nothing was sent')
        expect(call.body).toBe(String(new URLSearchParams(call.body)))
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
      { numRuns: tries(2_000) },
    )
    expect(accepted).toBeGreaterThan(tries(500))
  })
})
