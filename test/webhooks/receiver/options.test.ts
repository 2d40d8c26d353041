import { inspect } from 'node:util'
import { ConfigurationError, DeliveryReceiver } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'

const construct = (options: unknown) => new DeliveryReceiver(options as { allowUnauthenticated: true })

function issuesOf(options: unknown) {
  try {
    construct(options)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    return (error as ConfigurationError).issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  }
  return []
}

describe('a receiver demands a decision on authentication (docs/service.md, Authentication)', () => {
  test('secrets or allowUnauthenticated: true', () => {
    expect(issuesOf({ secrets: { token: 'a' } })).toEqual([])
    expect(issuesOf({ allowUnauthenticated: true })).toEqual([])
    expect(issuesOf({ secrets: { token: 'a' }, allowUnauthenticated: false })).toEqual([])
    expect(issuesOf({ secrets: undefined, allowUnauthenticated: true })).toEqual([])
  })

  test.each([{}, { allowUnauthenticated: false }, { secrets: undefined }])(
    'neither is refused: %j',
    (options) => {
      expect(issuesOf(options)).toEqual([
        'secrets: is missing: give it, or `allowUnauthenticated: true`, which lets everyone in',
      ])
    },
  )

  test('both are refused', () => {
    expect(issuesOf({ secrets: { token: 'a' }, allowUnauthenticated: true })).toEqual([
      'secrets: cannot go with `allowUnauthenticated: true`, which lets everyone in: leave one out',
    ])
  })
})

describe('options that cannot work are refused with every problem', () => {
  test.each([undefined, null, 1, 'options', []])('%j is no options', (options) => {
    expect(issuesOf(options)).toHaveLength(1)
  })

  const empty = 'is empty (is its environment variable set?)'
  const badText = 'cannot be the value of a header: visible ASCII only, with spaces and tabs inside'
  const badName = "is no header name: those have letters, digits and !#$%&'*+-.^_`|~ only"
  test.each<[string, unknown, string]>([
    ['no object', 'a', 'secrets: must hold accepted values by header name'],
    ['a list', [['token', 'a']], 'secrets: must hold accepted values by header name'],
    ['null', null, 'secrets: must hold accepted values by header name'],
    ['empty', {}, 'secrets: must hold accepted values by header name'],
    ['an empty list of values', { token: [] }, 'secrets.token: has no accepted value'],
    ['an empty value', { token: '' }, `secrets.token: ${empty}`],
    ['an empty value in a list', { token: ['a', ''] }, `secrets.token.1: ${empty}`],
    [
      'a value that is missing',
      { token: undefined },
      'secrets.token: is missing (is its environment variable set?)',
    ],
    ['a number', { token: [1] }, 'secrets.token.0: must be text'],
    ['a line feed', { token: 'a\nb' }, `secrets.token: ${badText}`],
    ['a space at the end', { token: 'a ' }, `secrets.token: ${badText}`],
    ['a letter beyond ASCII', { token: 'ä' }, `secrets.token: ${badText}`],
    ['a name with a space', { 'to ken': 'a' }, `secrets.to ken: ${badName}`],
    ['an empty name', { '': 'a' }, `secrets.: ${badName}`],
    ['a name twice', { token: 'a', Token: 'b' }, 'secrets.Token: is there twice: case does not count'],
    ['a bad __proto__', JSON.parse('{"__proto__": 5}'), 'secrets.__proto__: must be text'],
  ])('secrets: %s', (_, secrets, issue) => {
    expect(issuesOf({ secrets })).toEqual([issue])
  })

  test.each<[string, unknown, string]>([
    ['onInvalid', 'log', 'onInvalid: must be a function, not text'],
    ['onError', {}, 'onError: must be a function, not an object'],
    ['onRefused', true, 'onRefused: must be a function, not a boolean'],
    ['ackTimeoutMs', -1, 'ackTimeoutMs: must be at least 0'],
    ['ackTimeoutMs', Number.NaN, 'ackTimeoutMs: must be a finite number'],
    ['ackTimeoutMs', 2 ** 31, 'ackTimeoutMs: must be at most 2147483647'],
    ['ackTimeoutMs', '5', 'ackTimeoutMs: must be a number, not text'],
    ['maxBodyBytes', 0, 'maxBodyBytes: must be at least 1'],
    ['maxBodyBytes', 1.5, 'maxBodyBytes: must be an integer'],
    ['maxBodyBytes', Number.POSITIVE_INFINITY, 'maxBodyBytes: must be a finite number'],
    ['logger', { info() {} }, 'logger: must be a logger with debug, info, warn and error, or false'],
    ['logger', null, 'logger: must be a logger with debug, info, warn and error, or false'],
    ['parser', {}, 'parser: must be a parser from createDeliveryParser'],
    ['allowUnauthenticated', 'yes', 'allowUnauthenticated: must be a boolean, not text'],
    ['secret', 'x', ': there is no `secret` (did you mean `secrets`?)'],
  ])('%s: %j', (name, value, issue) => {
    const issues = issuesOf({ allowUnauthenticated: true, [name]: value })
    expect(issues).toEqual([expect.stringContaining(issue)])
    const [path = '', ...rest] = issue.split(': ')
    const sentence = `${path === '' ? '' : `\`${path}\` `}${rest.join(': ')}`
    expect(() => construct({ allowUnauthenticated: true, [name]: value })).toThrow(
      `The delivery receiver cannot work: ${sentence}.`,
    )
  })

  test.each(['debug', 'info', 'warn', 'error'])('a logger without %s', (missing) => {
    const logger = { debug() {}, info() {}, warn() {}, error() {}, [missing]: undefined }
    expect(issuesOf({ allowUnauthenticated: true, logger })).toHaveLength(1)
  })

  test('all problems at once, and never a secret', () => {
    const options = { secrets: { token: ['s3cret ', 5], 'x y': 's3cret' }, ackTimeoutMs: -1, typo: 's3cret' }
    expect(issuesOf(options)).toHaveLength(5)
    expect(() => construct(options)).toThrow(/The delivery receiver cannot work: .*ackTimeoutMs/)
    let error: unknown
    try {
      construct(options)
    } catch (thrown) {
      error = thrown
    }
    expect(inspect(error, { depth: 9 })).not.toContain('s3cret')
  })

  test('a type that is no string and a handler that is no function', () => {
    const receiver = construct({ allowUnauthenticated: true })
    const refusals: [() => unknown, string, string][] = [
      [() => receiver.on(5 as never, () => {}), 'type', 'must be text'],
      [() => receiver.on('a', undefined as never), 'handler', 'must be a function'],
      [() => receiver.onAny('log' as never), 'handler', 'must be a function'],
    ]
    for (const [register, path, message] of refusals) {
      expect(register).toThrow(ConfigurationError)
      expect(register).toThrow(`The delivery receiver cannot work: \`${path}\` ${message}.`)
      expect(register).toThrow(expect.objectContaining({ issues: [{ path: [path], message }] }))
    }
  })
})

test('a receiver shows no secret', () => {
  const receiver = construct({ secrets: { token: 's3cret' } })
  expect(inspect(receiver, { depth: 9, showHidden: true })).not.toContain('s3cret')
  expect(JSON.stringify(receiver)).toBe('{}')
})
