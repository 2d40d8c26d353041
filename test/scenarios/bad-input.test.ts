/** Values of any type, as callers in JavaScript may pass them, are refused before anything is sent, or sent as they are. */
import fc from 'fast-check'
import {
  type CreateSubscriptionInput,
  type FetchLike,
  NotificationClient,
  NotificationError,
  notificationTypes,
  TimeoutError,
} from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { baseUrl, credentials, subscription, tokenAnswer, tokenUrl } from '../support/fake-service.js'
import { tries } from '../support/random-runs.js'

/** What JavaScript callers may pass, with the strings that are most likely to break something. */
const injected = 'a\r\nx-injected: 1'
const nasty = fc.constantFrom('', ' ', '\r\n', injected, '\0', ',', '\ud800', '__proto__', '..', 'é')
const anything = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }),
  fc.anything({ withNullPrototype: true, withSparseArray: true, withBoxedValues: true }),
  nasty,
  fc.string({ unit: 'binary' }),
  fc.func(fc.anything()),
  fc.constantFrom(Symbol('x'), Number.NaN, -0, Number.POSITIVE_INFINITY),
)

interface Sent {
  readonly url: string
  readonly headers: Record<string, string>
  readonly body?: string | undefined
}

/** A service that takes everything, and remembers what it was sent. */
function openService() {
  const sent: Sent[] = []
  const fetch: FetchLike = async (url, { headers, body }) => {
    sent.push({ url, headers, body })
    return url === tokenUrl || url.includes('/openid-connect/token')
      ? tokenAnswer('header.payload.signature')
      : Response.json({ subscription_id: 1 }, { status: 201 })
  }
  return { sent, fetch }
}

function expectNoLineBreakIn(sent: readonly Sent[]): void {
  for (const { url, headers } of sent) {
    for (const text of [url, ...Object.entries(headers).flat()]) expect(text).not.toMatch(/[\r\n\0]/)
  }
}

/** Makes the call, and returns what was sent; if it fails, it failed as it should and nothing was sent. */
async function refusedOrSent(call: (client: NotificationClient) => unknown): Promise<readonly Sent[]> {
  const { sent, fetch } = openService()
  const client = new NotificationClient({ baseUrl, auth: credentials, fetch, retry: false })
  try {
    await call(client)
  } catch (error) {
    // `timeoutMs` may be valid, and less than the call takes.
    if (error instanceof TimeoutError && error.timeoutMs < 1_000) return []
    expect(error).toBeInstanceOf(NotificationError)
    expect(error).toMatchObject({ code: 'INVALID_REQUEST' })
    expect((error as { issues: unknown[] }).issues).not.toEqual([])
    expect(sent).toEqual([])
  }
  expectNoLineBreakIn(sent)
  return sent
}

const complete = {
  ...subscription,
  recreateIfExists: true,
  parameters: { token: 'x' },
  headers: { UserData: 'y' },
}

/** A valid object with one thing replaced or added. */
const spoiled = (valid: object) =>
  fc
    .oneof(
      fc.tuple(fc.constantFrom(...Object.keys(valid)), anything),
      fc.tuple(fc.oneof(nasty, fc.string()), anything),
    )
    .map(([key, value]) => ({ ...valid, [key]: value }))

/** Pairs for headers whose names and values are likely to be wrong. */
const pairs = fc.dictionary(
  fc.oneof(nasty, fc.string()),
  fc.oneof(nasty, fc.string({ unit: 'binary' }), anything),
)

const inputs = fc.oneof(
  anything,
  spoiled(complete),
  fc.record({ parameters: pairs }).map((wrong) => ({ ...complete, ...wrong })),
  fc.record({ headers: pairs }).map((wrong) => ({ ...complete, ...wrong })),
  fc.array(fc.oneof(nasty, anything)).map((usernames) => ({ ...complete, usernames })),
)

/** What the service takes in any case. */
const friendly: fc.Arbitrary<CreateSubscriptionInput> = fc.record(
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

const callOptions = fc.oneof(anything, spoiled({ timeoutMs: 1_000, signal: new AbortController().signal }))

const any = (value: unknown) => value as never

describe('every method of the client', () => {
  type Call = (client: NotificationClient, value: never) => unknown
  test.each<[name: string, values: fc.Arbitrary<unknown>, call: Call]>([
    ['tryCreateSubscription', inputs, (client, value) => client.tryCreateSubscription(value)],
    ['unsubscribe', anything, (client, value) => client.unsubscribe(value)],
    ['update', inputs, (client, value) => client.updateSubscriptionParameters(1, value)],
    [
      'update of any id',
      anything,
      (client, value) => client.updateSubscriptionParameters(value, { parameters: { token: 'x' } }),
    ],
    ['getAccessToken with options', callOptions, (client, value) => client.getAccessToken(value)],
    ['create with options', callOptions, (client, value) => client.createSubscription(subscription, value)],
    ['unsubscribe with options', callOptions, (client, value) => client.unsubscribe(1, value)],
  ])('%s refuses it, or sends it', async (_name, values, call) => {
    await fc.assert(
      fc.asyncProperty(values, async (value) => {
        await refusedOrSent((client) => call(client, any(value)))
      }),
      { numRuns: tries(400) },
    )
  })
})

test('a create that is sent decodes to what was given, and what the service takes is sent', async () => {
  const given = fc.oneof(
    friendly.map((input) => [input, true] as const),
    inputs.map((input) => [input, false] as const),
  )
  const property = fc.asyncProperty(given, async ([input, isTaken]) => {
    const [, create] = await refusedOrSent((client) => client.createSubscription(any(input)))
    if (isTaken) expect(create).toBeDefined()
    if (create === undefined) return
    const { notificationTypes, usernames, callbackUrl, recreateIfExists, parameters, headers } = Object(input)
    expect(create.body).toBe(String(new URLSearchParams(create.body)))
    const { notification_type, username, callback_url, ...others } = Object.fromEntries(
      new URLSearchParams(create.body),
    )
    expect([notification_type?.split(','), username?.split(',')]).toEqual([notificationTypes, usernames])
    expect(callback_url).toBe(String(callbackUrl))
    const flags = recreateIfExists === undefined ? {} : { recreateIfExists: String(recreateIfExists) }
    // Of maps, zod leaves out an own `__proto__`, which only JSON.parse makes.
    const { ['__proto__']: _, ...pairs } = { ...parameters, ...flags }
    expect(others).toEqual(pairs)
    for (const [name, value] of Object.entries({ ...headers })) expect(create.headers[name]).toBe(value)
  })
  await fc.assert(property, { numRuns: tries(2_000) })
})

const validOptions = {
  baseUrl,
  auth: credentials,
  timeoutMs: 1_000,
  retry: { maxAttempts: 2 },
  routes: { update: { path: '/x/{subscriptionId}' } },
  logger: console,
}
const auths = fc.oneof(
  spoiled({ ...credentials, scope: 'a b', credentialsEncoding: 'raw' }),
  spoiled({ username: 'u', password: 'p' }),
  spoiled({ getAccessToken: () => 'token' }),
  anything,
)

describe('the constructor', () => {
  const options = fc.oneof(
    anything,
    spoiled(validOptions),
    auths.map((auth) => ({ ...validOptions, auth })),
  )

  test('refuses its options, or makes a client whose requests have no line breaks in their headers', async () => {
    const property = fc.asyncProperty(options, async (value) => {
      const { sent, fetch } = openService()
      const own = typeof value === 'object' && value !== null && 'baseUrl' in value
      let client: NotificationClient
      try {
        client = new NotificationClient(
          any(own ? { ...value, dispatcher: undefined, fetch, logger: undefined } : value),
        )
      } catch (error) {
        expect(error).toMatchObject({ code: 'CONFIGURATION' })
        expect(sent).toEqual([])
        return
      }
      const [result] = await Promise.allSettled([client.createSubscription(subscription)])
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(NotificationError)
      expectNoLineBreakIn(sent)
    })
    await fc.assert(property, { numRuns: tries(1_000) })
  })
})
