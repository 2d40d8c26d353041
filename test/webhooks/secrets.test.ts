import { ConfigurationError, DeliveryReceiver, verifySecrets } from 'notification-subscriber/webhooks'
import { describe, expect, test, vi } from 'vitest'
import { failureOf } from '../support/failure.js'
import { expectPage } from '../support/message-page.js'
import { post, recordingReceiver, secrets } from './support.js'

type HeadersArgument = Parameters<typeof verifySecrets>[0]

/** What `verifySecrets` says, and the receiver, which must be the same. */
async function isAccepted(headers: unknown, accepted: Parameters<typeof verifySecrets>[1] = secrets) {
  const verified = verifySecrets(headers as HeadersArgument, accepted)
  const receiver = new DeliveryReceiver({ secrets: accepted, logger: false })
  const { status } = await receiver.handle({ ...post(), headers: headers as HeadersArgument })
  expect(status).toBe(verified ? 204 : 401)
  return verified
}

describe('verifySecrets and the receiver let a request in by its headers (docs/service.md, Authentication)', () => {
  test.each<[string, unknown]>([
    ['missing', {}],
    ['wrong in its last character, the longest one', { token: 'the-previous-secreT' }],
    ['wrong in its first character', { token: 'The-current-secret' }],
    ['a prefix', { token: 'the-current-secre' }],
    ['longer', { token: 'the-current-secret1' }],
    ['longer than all accepted values', { token: 'the-previous-secret'.repeat(1000) }],
    ['empty', { token: '' }],
    ['an array of two', { token: ['the-current-secret', 'the-current-secret'] }],
    ['sent twice and joined', { token: 'the-current-secret, the-current-secret' }],
    ['in Headers twice', new Headers(['token', 'token'].map((name) => [name, 'the-current-secret']))],
    ['a number', { token: 5 }],
    ['in another header, whose name is as long', { taken: 'the-current-secret' }],
    ['on the prototype', Object.create({ token: 'the-current-secret' })],
    ['in no headers', undefined],
    ['in text', 'token: the-current-secret'],
  ])('a secret that is %s is refused', async (_, headers) => {
    expect(await isAccepted(headers)).toBe(false)
  })

  test('header names are the same in any case, in every form of headers', async () => {
    for (const headers of [
      { 'x-token': 'a', UserData: 'b, c' },
      { 'X-TOKEN': 'a', userdata: 'b, c', other: ['x', 'y'], absent: undefined },
      { 'x-token': ['a'], userdata: ['b, c'] },
      { 'x-token': 'a', userdata: 'b, c', get: 'a header of this name' },
      { get: (name: string) => ({ 'x-token': 'a', userdata: 'b, c' })[name] ?? null },
      new Headers({ 'x-token': 'a', userData: 'b, c' }),
      Object.assign(Object.create(null), { 'x-token': 'a', userdata: 'b, c' }),
    ]) {
      expect(await isAccepted(headers, { 'X-Token': 'a', userdata: 'b, c' })).toBe(true)
    }
  })

  test('every header that is named must be right', async () => {
    const two = { first: 'a', second: ['b', 'c'] }
    expect(await isAccepted({ first: 'a', second: 'c' }, two)).toBe(true)
    expect(await isAccepted({ first: 'x', second: 'c' }, two)).toBe(false)
    expect(await isAccepted({ first: 'a', second: 'x' }, two)).toBe(false)
    expect(await isAccepted({ first: 'b', second: 'a' }, two)).toBe(false)
  })

  test('as many characters are compared for every value of the same length', () => {
    const accepted = { token: ['the-first-secret', 'another-secret-!'], other: 'a-second-header!' }
    const compared = (token: string, other = accepted.other) => {
      const read = vi.spyOn(String.prototype, 'charCodeAt')
      verifySecrets({ token, other }, accepted)
      const { length } = read.mock.calls
      read.mockRestore()
      return length
    }
    const right = compared('the-first-secret')
    expect(right).toBe(2 * 3 * 16)
    for (const token of ['another-secret-!', 'xhe-first-secret', 'the-first-secrex']) {
      expect(compared(token)).toBe(right)
      expect(compared(token, 'x-second-header!')).toBe(right)
    }
  })
})

const placeholders = ['a-long-random-value', 'changeme', 'CHANGE-ME', 'undefined', 'null', '<TOKEN>']

test('secrets that cannot work are refused by the receiver, and by verifySecrets in these words: the reviewed page', async () => {
  const wrong: Record<string, unknown> = {
    'no object': 'a',
    'a list': [['token', 'a']],
    'the value null': null,
    'none at all': {},
    'an empty list of values': { token: [] },
    'an empty value': { token: '' },
    'an empty value in a list': { token: ['a', ''] },
    'a value that is missing': { token: undefined },
    'a number': { token: [1] },
    'a line feed': { token: 'a\nb' },
    'a space at the end': { token: 'a ' },
    'a letter beyond ASCII': { token: 'ä' },
    'a name with a space': { 'to ken': 'a' },
    ...Object.fromEntries(placeholders.map((value) => [value, { token: ['a', value] }])),
    'a variable of a shell': { token: `\${TOKEN}` },
    'a template': { token: '{token}' },
    'an empty name': { '': 'a' },
  }
  const refusalOf = (construct: () => unknown) =>
    failureOf(Promise.resolve().then(construct)) as Promise<ConfigurationError>
  const messages: Record<string, string> = {}
  for (const [what, given] of Object.entries(wrong)) {
    const { issues, message } = await refusalOf(() => verifySecrets({ token: 'a' }, given as typeof secrets))
    const ofReceiver = await refusalOf(() => new DeliveryReceiver({ secrets: given as typeof secrets }))
    expect(ofReceiver).toBeInstanceOf(ConfigurationError)
    expect(ofReceiver.issues).toEqual(issues)
    messages[what] = message
  }
  await expectPage('secrets', messages)
})

describe('short secrets are logged, once for each receiver', () => {
  const long = 'a-secret-of-tests'
  test.each<[Record<string, string | string[]>, boolean]>([
    [{ token: 'fifteen-letters' }, true],
    [{ token: 'sixteen-letters!' }, false],
    [{ token: [long, 'short'] }, true],
    [{ token: 'short', other: 'short' }, true],
    // Who must know both must know the long one.
    [{ token: long, 'x-tenant': 'acme' }, false],
  ])('%j: %j', (given, isLogged) => {
    const { lines } = recordingReceiver({ secrets: given })
    const line = { level: 'warn', fields: { event: 'secret.short', headers: Object.keys(given) } }
    expect(lines).toEqual(isLogged ? [expect.objectContaining(line)] : [])
  })
})
