/**
 * Client and receiver read each foreign text in linear time: a text of 1 MiB, the worst for its pattern, takes at most
 * 20 times as long as one of 128 KiB. Linear time is 8 times as long, quadratic time 64 times.
 */
import { DeliveryReceiver, safeParseDelivery } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { logOf } from '../../src/logger.js'
import { failureOf } from '../support/failure.js'
import { type FakeService, fakeService, subscription } from '../support/fake-service.js'
import { recordingLogger } from '../support/recording-logger.js'

const smallLength = 128 * 1024
const largeLength = 1024 * 1024

/** Shorter times are taken for this one: they vary with the collection of garbage. */
const floorMs = 5

const mostTimes = 20

const rounds = 5

type Read = (text: string) => unknown

/** Reads texts that consist of a beginning, as many repetitions as fit, and an end. */
async function expectLinear(read: Read, beginning: string, repeated: string, end: string): Promise<void> {
  const textOf = (length: number) =>
    beginning + repeated.repeat(Math.floor((length - beginning.length - end.length) / repeated.length)) + end
  const [small, large] = [textOf(smallLength), textOf(largeLength)]
  let [smallMs, largeMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  // In turn, so that both meet the same machine. The least counts: garbage and a busy machine only add to it.
  for (let round = 0; round < rounds; round += 1) {
    largeMs = Math.min(largeMs, await durationMs(read, large))
    // Short enough, whatever the other takes.
    if (largeMs <= mostTimes * floorMs) return
    smallMs = Math.min(smallMs, await durationMs(read, small))
  }
  expect(largeMs / Math.max(smallMs, floorMs)).toBeLessThanOrEqual(mostTimes)
}

/** Time of the processor: what other programs take does not count. */
async function durationMs(read: Read, text: string): Promise<number> {
  const before = process.cpuUsage()
  await read(text)
  const { user, system } = process.cpuUsage(before)
  const durationMs = (user + system) / 1_000
  // What takes so long is not measured again: the other rounds would take minutes.
  expect(durationMs).toBeLessThan(2_000)
  return durationMs
}

/** @param worst - the part in « » is repeated */
function readers(name: string, read: Read, worst: readonly string[]): void {
  test.each(worst)(`${name}: %j`, (text) => {
    const [beginning = '', repeated = '', end = ''] = text.split(/[«»]/)
    return expectLinear(read, beginning, repeated, end)
  })
}

/** Escapes, and what is nearly a token. */
const escapes = [
  ...['«eyJ»', '«eyJ.»', '«eyJ-» ', '«.»', '«"access_token"»', '"access_token"« »'],
  ...['"access_token":"«\\"»', '«id_token=»', '«\\»', '«\\»u004', '«\\u0041»', '«%41»', '«%25»41'],
  ...['«&amp;»', '«&#1»', '«&#38;»', '«+»', '«s3cret-»'],
]

type Answers = Partial<Pick<FakeService, 'onToken' | 'onCall'>>

describe('answers to the client', () => {
  const long = { token: 's3cret-s3cret', long: 's3cret-'.repeat(500) }
  const input = (parameters = {}) => ({ ...subscription, parameters })
  const rows: [
    name: string,
    answers: (text: string) => Answers,
    code: string,
    worst: string[],
    parameters?: object,
  ][] = [
    [
      'a body that is no token',
      (text) => ({ onToken: () => new Response(text) }),
      'RESPONSE_VALIDATION',
      escapes,
    ],
    [
      'the description of a refused token',
      (text) => ({ onToken: () => Response.json({ error: text, error_description: text }, { status: 401 }) }),
      'TOKEN_REQUEST',
      ['«eyJ»', '«\\»', '«\n»x'],
    ],
    [
      'a token, and its type',
      (text) => ({
        onToken: () => Response.json({ access_token: text, token_type: text, expires_in: text }),
      }),
      'RESPONSE_VALIDATION',
      ['«x»\n', '«Bearer» ', '«é»'],
    ],
    [
      'the body of an error',
      (text) => ({ onCall: () => new Response(text, { status: 400 }) }),
      'API',
      escapes,
      long,
    ],
    [
      'the body of a success',
      (text) => ({ onCall: () => new Response(text, { status: 201 }) }),
      'RESPONSE_VALIDATION',
      ['«[»', '«{"a":»', '« »<', '{"subscription_id":"«1»"}'],
    ],
    [
      'the words of the network',
      (text) => ({ onCall: () => Promise.reject(Object.assign(new Error(text), { code: text })) }),
      'OUTCOME_UNKNOWN',
      ['« »', '«\\u0041»', '«\n»x'],
    ],
  ]
  for (const [name, answers, code, worst, parameters] of rows) {
    const read = async (text: string) => {
      const client = Object.assign(fakeService(), answers(text)).client({ retry: false })
      expect(await failureOf(client.createSubscription(input(parameters)))).toHaveProperty('code', code)
    }
    readers(name, read, worst)
  }

  readers(
    'Retry-After',
    async (text) => {
      const headers = { get: (name: string) => (name === 'retry-after' ? text : null) }
      const answer = { status: 429, headers, text: async () => '' }
      const auth = { getAccessToken: () => 'x' }
      const client = fakeService().client({ auth, retry: false, fetch: async () => answer })
      expect(await failureOf(client.unsubscribe(1))).toHaveProperty('code', 'API')
    },
    ['« »x', '«1»x', 'Mon, «(»', 'Mon, «1 »', 'Monday« »'],
  )
})

describe('users and addresses that an app passes on', () => {
  const refused = async (change: object) => {
    const call = fakeService()
      .client()
      .createSubscription({ ...subscription, ...change })
    expect(await failureOf(call)).toHaveProperty('code', 'INVALID_REQUEST')
  }

  readers('a callback URL', (callbackUrl) => refused({ callbackUrl }), [
    ...['«{{»', '«${»', '«%7B»', '« »', 'https:«/» ', 'https://«{a»', 'https://«<a»', 'https://«A»!'],
    ...['https://«A_»!', 'https://«A_.»!', 'https://«a.»!', 'https://«undefined.»', 'https://«a@»'],
    ...['https://app.example.com/«/»?"', 'https://app.example.com/«?»"'],
  ])

  readers('a username', (name) => refused({ usernames: [name] }), ['« »x ', 'x« »', '«x»\n', '«x»,'])

  readers('a name and a value', (text) => refused({ parameters: { [text]: text } }), [
    '«x» ',
    '« »x ',
    '«\t»',
    'x« »',
  ])
})

describe('callbacks', () => {
  readers('a body', (text) => expect(safeParseDelivery(text)).toMatchObject({ success: false }), [
    '«[»',
    '«{"a":»',
    '« »',
    '«\ufeff»',
    '«"»',
    '"«\\u0041»',
    '{"notification":[«1,»1]}',
    '{"subscriptionId":"«x»"}',
    '{"notification":{"type":"«lowEnergyAgentOpened»"}}',
  ])

  const delivery = JSON.stringify({
    subscriptionId: 1,
    notification: { id: 'a', time: 1, ver: '1.0', type: 'lowEnergyAgentOpened', payload: '?' },
  })
  readers(
    'a payload',
    (payload) =>
      expect(safeParseDelivery(delivery.replace('"?"', () => payload))).toMatchObject({ success: false }),
    ['{"callId":[«"",»""]}', '{"callId":"«x»"}', '{"__proto__":[«1,»1]}'],
  )

  const receiver = new DeliveryReceiver({ secrets: { token: 's3cret' }, logger: false })
  readers(
    'a header with a secret',
    async (token) =>
      expect(await receiver.handle({ method: 'POST', headers: { token }, body: '' })).toMatchObject({
        status: 401,
      }),
    ['«s3cret»', '«s3cret,»'],
  )
})

readers(
  'the error of a handler, in a log line',
  async (text) => {
    const { lines, ...logger } = recordingLogger()
    await logOf(logger)('error', { event: 'handler.failed', err: new Error(text) }, 'failed')
    expect(lines).toHaveLength(1)
  },
  ['«key»', '«token=»', '«a://»', '«a://b:»', '«Bearer »', '«x-key »', '«eyJ.»', '«a.»'],
)
