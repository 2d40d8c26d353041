import { inspect } from 'node:util'
import { ConfigurationError, DeliveryReceiver } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'

const construct = (options: unknown) => new DeliveryReceiver(options as { allowUnauthenticated: true })

function pathsOf(options: unknown) {
  try {
    construct(options)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(inspect(error, { depth: 9 })).not.toContain('s3cret')
    return (error as ConfigurationError).issues.map(({ path }) => path.join('.'))
  }
  return []
}

describe('a receiver demands a decision on authentication (docs/service.md, Authentication)', () => {
  test('secrets or allowUnauthenticated: true', () => {
    expect(pathsOf({ secrets: { token: 'a-secret-of-tests' } })).toEqual([])
    expect(pathsOf({ allowUnauthenticated: true })).toEqual([])
    expect(pathsOf({ secrets: { token: 'a-secret-of-tests' }, allowUnauthenticated: false })).toEqual([])
    expect(pathsOf({ secrets: undefined, allowUnauthenticated: true })).toEqual([])
  })

  test.each([
    {},
    { allowUnauthenticated: false },
    { secrets: undefined },
    { secrets: { token: 'a-secret-of-tests' }, allowUnauthenticated: true },
  ])('neither and both are refused: %j', (options) => {
    expect(pathsOf(options)).toEqual(['secrets'])
  })
})

describe('options that cannot work are refused with every problem', () => {
  test.each([undefined, null, 1, 'options', []])('%j is no options', (options) => {
    expect(pathsOf(options)).toHaveLength(1)
  })

  test.each<[string, unknown]>([
    ['onInvalid', 'log'],
    ['onError', {}],
    ['onRefused', true],
    ['ackTimeoutMs', -1],
    ['ackTimeoutMs', Number.NaN],
    ['ackTimeoutMs', 2 ** 31],
    ['ackTimeoutMs', '5'],
    ['maxBodyBytes', 0],
    ['maxBodyBytes', 1.5],
    ['maxBodyBytes', Number.POSITIVE_INFINITY],
    ['logger', { info() {} }],
    ['logger', null],
    ['allowUnauthenticated', 'yes'],
  ])('%s: %j', (name, value) => {
    expect(pathsOf({ allowUnauthenticated: true, [name]: value })).toEqual([name])
  })

  test('all problems at once, and never a secret', () => {
    const options = { secrets: { token: ['s3cret ', 5], 'x y': 's3cret' }, ackTimeoutMs: -1, typo: 's3cret' }
    expect(pathsOf(options)).toHaveLength(5)
    expect(pathsOf(options)).toContain('ackTimeoutMs')
  })
})

test('a receiver shows no secret', () => {
  const receiver = construct({ secrets: { token: 's3cret-and-more-of-it' } })
  expect(inspect(receiver, { depth: 9, showHidden: true })).not.toContain('s3cret')
  expect(JSON.stringify(receiver)).toBe('{}')
})
