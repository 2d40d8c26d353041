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

describe('a receiver demands a decision on authentication (interface.md section 5, rule 6)', () => {
  test('secrets or allowUnauthenticated: true', () => {
    expect(issuesOf({ secrets: { token: 'a' } })).toEqual([])
    expect(issuesOf({ allowUnauthenticated: true })).toEqual([])
    expect(issuesOf({ secrets: { token: 'a' }, allowUnauthenticated: false })).toEqual([])
    expect(issuesOf({ secrets: undefined, allowUnauthenticated: true })).toEqual([])
  })

  test('neither, or both, is refused', () => {
    for (const options of [{}, { allowUnauthenticated: false }, { secrets: undefined }]) {
      expect(issuesOf(options)).toEqual([
        expect.stringMatching(/^secrets: are missing: .*allowUnauthenticated/),
      ])
    }
    expect(issuesOf({ secrets: { token: 'a' }, allowUnauthenticated: true })).toEqual([
      'secrets: contradict `allowUnauthenticated: true`',
    ])
  })
})

describe('options that cannot work are refused with every problem', () => {
  test.each([undefined, null, 1, 'options', []])('%j is no options', (options) => {
    expect(issuesOf(options)).toHaveLength(1)
  })

  test.each<[string, unknown, string]>([
    ['no object', 'a', 'secrets: must be an object'],
    ['a list', [['token', 'a']], 'secrets: must be an object'],
    ['null', null, 'secrets: must be an object'],
    ['empty', {}, 'secrets: must name a header'],
    ['an empty list of values', { token: [] }, 'secrets.token: must hold a value'],
    ['an empty value', { token: '' }, 'secrets.token: must not be empty'],
    ['an empty value in a list', { token: ['a', ''] }, 'secrets.token.1: must not be empty'],
    ['a value that is missing', { token: undefined }, 'secrets.token: must be a string'],
    ['a number', { token: [1] }, 'secrets.token.0: must be a string'],
    ['a line feed', { token: 'a\nb' }, 'secrets.token: cannot be the value'],
    ['a space at the end', { token: 'a ' }, 'secrets.token: cannot be the value'],
    ['a letter beyond ASCII', { token: 'ä' }, 'secrets.token: cannot be the value'],
    ['a name with a space', { 'to ken': 'a' }, 'secrets.to ken: the name cannot be'],
    ['an empty name', { '': 'a' }, 'secrets.: the name cannot be'],
    ['a name twice', { token: 'a', Token: 'b' }, 'secrets.Token: the name is given twice'],
    ['a bad __proto__', JSON.parse('{"__proto__": 5}'), 'secrets.__proto__: must be a string'],
  ])('secrets: %s', (_, secrets, issue) => {
    expect(issuesOf({ secrets })).toEqual([expect.stringContaining(issue)])
  })

  test.each<[string, unknown]>([
    ['onInvalid', 'log'],
    ['onError', {}],
    ['ackTimeoutMs', -1],
    ['ackTimeoutMs', Number.NaN],
    ['ackTimeoutMs', 2 ** 31],
    ['ackTimeoutMs', '5'],
    ['maxBodyBytes', 0],
    ['maxBodyBytes', 1.5],
    ['maxBodyBytes', Number.POSITIVE_INFINITY],
    ['logger', { info() {} }],
    ['parser', {}],
    ['allowUnauthenticated', 'yes'],
    ['secret', 'x'],
  ])('%s: %j', (name, value) => {
    const issues = issuesOf({ allowUnauthenticated: true, [name]: value })
    expect(issues).toHaveLength(1)
    expect(issues[0]).toContain(name)
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
    expect(() => receiver.on(5 as never, () => {})).toThrow(ConfigurationError)
    expect(() => receiver.on('a', undefined as never)).toThrow(ConfigurationError)
    expect(() => receiver.onAny('log' as never)).toThrow(ConfigurationError)
  })
})

test('a receiver shows no secret', () => {
  const receiver = construct({ secrets: { token: 's3cret' } })
  expect(inspect(receiver, { depth: 9, showHidden: true })).not.toContain('s3cret')
  expect(JSON.stringify(receiver)).toBe('{}')
})
