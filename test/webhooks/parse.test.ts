import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import {
  ConfigurationError,
  createDeliveryParser,
  InvalidDeliveryError,
  type PayloadSchemas,
  parseDelivery,
  safeParseDelivery,
} from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { changed, deliveryOf, lowEnergyDelivery } from './deliveries.js'

function refusalOf(body: unknown): InvalidDeliveryError {
  const result = safeParseDelivery(body)
  if (result.success) throw new Error('expected the body to be refused')
  return result.error
}

const pathsOf = (error: InvalidDeliveryError) => error.issues.map((issue) => issue.path.join('.'))

const { proxy: revoked, revoke } = Proxy.revocable({}, {})
revoke()

const textOf = (delivery: unknown) => JSON.stringify(delivery)
const bytesOf = (text: string) => new TextEncoder().encode(text)

describe('the delivery body (docs/service.md, Resources)', () => {
  test('a lowEnergyAgentOpened delivery is returned as sent', () => {
    expect(parseDelivery(textOf(lowEnergyDelivery()))).toEqual(lowEnergyDelivery())
  })

  const integers = [0, -0, -21648, 2 ** 53 + 2, 1e300]
  const noIntegers = [0.5, 35912.000000000007, '35912', false, Number.NaN, Number.POSITIVE_INFINITY]
  const texts = ['', 'not a uuid']

  test.each<[path: string, accepted: readonly unknown[], refused: readonly unknown[]]>([
    ['subscriptionId', [4711, -1], [1.5, '007', '1.5', '9007199254740992', '', 2 ** 53, true]],
    ['notification', [], ['text']],
    ['notification.id', texts, [1]],
    ['notification.time', integers, noIntegers],
    ['notification.ver', texts, [1]],
    ['notification.type', texts, [1]],
    ['notification.payload', [], [[], 'text', 1, true]],
    ['notification.payload.callId', texts, [1]],
    ['notification.payload.username', texts, [1]],
    ['notification.payload.bTime', integers, noIntegers],
    ['notification.payload.nTime', integers, noIntegers],
    ['notification.payload.idx', integers, noIntegers],
  ])(
    '%s may not be missing; what it may be, and what is refused with its path',
    (name, accepted, refused) => {
      const path = name.split('.')
      for (const value of accepted) {
        const text = textOf(changed(path, value))
        expect(parseDelivery(text)).toEqual(JSON.parse(text))
      }
      for (const value of [undefined, null, ...refused]) {
        expect(pathsOf(refusalOf(changed(path, value)))).toEqual([name])
      }
    },
  )

  test.each([
    ['4711', 4711],
    ['-1', -1],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('a subscriptionId of %j is read as the number', (written, read) => {
    const body = changed(['subscriptionId'], written)
    expect(parseDelivery(body)).toEqual(changed(['subscriptionId'], read))
    expect(body).toEqual(changed(['subscriptionId'], written))
  })

  test('every problem is listed', () => {
    const error = refusalOf({
      subscriptionId: 'x',
      notification: { id: 1, time: 't', ver: 1, type: 1, payload: 1 },
    })
    expect(pathsOf(error)).toEqual([
      'subscriptionId',
      'notification.id',
      'notification.time',
      'notification.ver',
      'notification.type',
      'notification.payload',
    ])
  })
})

describe('what is not documented is kept (docs/service.md, Notification types and Resources)', () => {
  test.each(['cxScoreUpdated', 'somethingNew', '', 'LowEnergyAgentOpened', 'lowEnergyAgentOpened '])(
    'type %j with any payload object is a delivery',
    (type) => {
      const delivery = deliveryOf(type, { score: [1, { deep: null }] })
      expect(parseDelivery(textOf(delivery))).toEqual(delivery)
      expect(safeParseDelivery(deliveryOf(type, {})).success).toBe(true)
    },
  )

  test('unknown fields at every level and a new ver are kept', () => {
    const text = textOf(changed(['notification', 'ver'], '99')).replaceAll('{"', '{"added":1,"')
    expect(parseDelivery(text)).toEqual(JSON.parse(text))
    expect(parseDelivery(text).notification.payload).toHaveProperty('added', 1)
  })

  test('a field named __proto__ is kept as a field and pollutes nothing', () => {
    const text = textOf(lowEnergyDelivery()).replaceAll('{"', '{"__proto__":{"polluted":true},"')
    const delivery = parseDelivery(text)
    expect(JSON.stringify(delivery)).toBe(text)
    expect(Object.getPrototypeOf(delivery.notification.payload)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  test('a required field inside a __proto__ field does not count as sent', () => {
    const text = '{"__proto__":{"subscriptionId":1},"notification":{}}'
    expect(pathsOf(refusalOf(text))).toContain('subscriptionId')
  })

  test('escaped lone surrogates are kept', () => {
    const text = textOf(changed(['notification', 'payload', 'username'], '\ud800'))
    expect(text).toContain('\\ud800')
    expect(parseDelivery(text).notification.payload.username).toBe('\ud800')
    expect(parseDelivery(bytesOf(text)).notification.payload.username).toBe('\ud800')
  })
})

describe('the forms of a body', () => {
  const text = textOf(changed(['notification', 'payload', 'username'], 'Zoë = 🎧 & so & on'))
  const bytes = bytesOf(text)
  const padded = new Uint8Array(bytes.length + 8)
  padded.set(bytes, 4)

  test.each<[string, unknown]>([
    ['a string', text],
    ['a string with a byte order mark', `\uFEFF${text}`],
    ['a string in white space', ` \r\n\t${text}\n`],
    ['a Uint8Array', bytes],
    ['a Uint8Array with a byte order mark', bytesOf(`\uFEFF${text}`)],
    ['a Buffer', Buffer.from(text)],
    ['an ArrayBuffer', bytes.slice().buffer],
    ['a DataView', new DataView(bytes.slice().buffer)],
    ['a view on the middle of a buffer', padded.subarray(4, 4 + bytes.length)],
    ['an ArrayBuffer of another realm', runInNewContext('Uint8Array.from(bytes).buffer', { bytes })],
    ['a Uint8Array of another realm', runInNewContext('Uint8Array.from(bytes)', { bytes })],
    ['an object', JSON.parse(text)],
    ['an object of another realm', runInNewContext('JSON.parse(text)', { text })],
    ['an object without a prototype', Object.assign(Object.create(null), JSON.parse(text))],
  ])('%s is read', (_, body) => {
    expect(JSON.stringify(parseDelivery(body))).toBe(JSON.stringify(JSON.parse(text)))
  })

  test('an object comes back as the same object, frozen or not', () => {
    const delivery = lowEnergyDelivery()
    expect(parseDelivery(delivery)).toBe(delivery)
    const frozen = Object.freeze(lowEnergyDelivery())
    expect(parseDelivery(frozen)).toBe(frozen)
  })

  test('bytes that are not UTF-8 do not disturb the next body', () => {
    refusalOf(bytes.subarray(0, text.indexOf('ë') + 1))
    expect(parseDelivery(bytes)).toEqual(JSON.parse(text))
  })
})

describe('the error', () => {
  // Others: test/messages/deliveries.txt.
  test.each<[string, unknown, PropertyKey[][]]>([
    ['an empty string', '', [[]]],
    ['no bytes', new Uint8Array(), [[]]],
    ['a byte order mark alone', '\uFEFF', [[]]],
    ['a form body', 'notification=1', [[]]],
    ['JSON null', 'null', [[]]],
    ['a symbol', Symbol('body'), [[]]],
    ['a proxy that throws', revoked, [[]]],
    ['a function', () => lowEnergyDelivery(), [[]]],
    ['an empty object', {}, [['subscriptionId'], ['notification']]],
    [
      'a wrong field',
      changed(['notification', 'payload', 'callId'], 7),
      [['notification', 'payload', 'callId']],
    ],
  ])('names what is wrong: %s', (_, body, paths) => {
    expect(refusalOf(body).issues.map(({ path }) => path)).toEqual(paths)
  })

  test.each<[string, unknown]>([
    ['text', '{"subscriptionId": 1'],
    ['bytes', new Uint8Array([0xff])],
    ['an object', { subscriptionId: 1 }],
  ])('keeps the body to the letter: %s', (_, body) => {
    const error = refusalOf(body)
    expect(error.body).toBe(body)
    expect(Object.keys(error)).not.toContain('body')
  })

  test('is thrown by parseDelivery and returned by safeParseDelivery', () => {
    expect(() => parseDelivery('{}')).toThrow(InvalidDeliveryError)
    const result = safeParseDelivery('{}')
    expect(result.success).toBe(false)
    expect(result.data).toBeUndefined()
    expect(result.error?.code).toBe('INVALID_DELIVERY')
    expect(safeParseDelivery(lowEnergyDelivery())).toEqual({ success: true, data: lowEnergyDelivery() })
  })

  test.each(['{"secret": tomorrow}', '{"secret":1,}', '{"secret":"tomo', '{"secret":'])(
    'quotes nothing of %s',
    (body) => {
      const error = refusalOf(body)
      expect(error.issues).toMatchObject([{ path: [] }])
      expect(inspect(error, { depth: 9 })).not.toMatch(/secret|tomo/)
    },
  )

  test('stands on one line even if the body does not', () => {
    expect(refusalOf('{"a\n":\u2028').message).not.toMatch(/[\n\u2028]/)
  })

  test.each<[string, () => unknown]>([
    ['1 MB that is not JSON', () => 'a'.repeat(1e6)],
    ['1 MB in a wrong field', () => textOf(changed(['subscriptionId'], 'a'.repeat(1e6)))],
    ['100,000 nested arrays', () => '['.repeat(1e5) + ']'.repeat(1e5)],
    [
      '100,000 nested objects in a wrong field',
      () => `{"subscriptionId":${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}}`,
    ],
  ])('is short: %s', (_, makeBody) => {
    expect(refusalOf(makeBody()).message.length).toBeLessThan(500)
  })

  test('an unknown field may be nested as deep as the limit of the body allows', () => {
    const nested = '['.repeat(100_000) + ']'.repeat(100_000)
    const text = textOf(lowEnergyDelivery()).replace('{', `{"added":${nested},`)
    expect(safeParseDelivery(text).success).toBe(true)
  })
})

describe('objects that misbehave are refused', () => {
  const throwing = (thrown: unknown) => ({
    get subscriptionId() {
      throw thrown
    },
  })
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const trap = () => {
    throw new Error('trap')
  }
  const trapped = new Proxy({}, { get: trap, getPrototypeOf: trap })

  test.each<[string, unknown]>([
    ['a getter that throws', throwing(new Error('from a getter'))],
    ['a getter that throws a symbol', throwing(Symbol('odd'))],
    ['a getter that throws a proxy that throws', throwing(trapped)],
    ['a getter that throws a long message', throwing(new Error('long '.repeat(1e5)))],
    ['a proxy whose traps throw', trapped],
    ['a revoked proxy', revoked.proxy],
    ['an object that says it is an ArrayBuffer', { [Symbol.toStringTag]: 'ArrayBuffer' }],
  ])('%s', (_, body) => {
    const error = refusalOf(body)
    expect(error).toBeInstanceOf(InvalidDeliveryError)
    expect(error.issues).toMatchObject([{ path: [] }])
    expect(error.message.length).toBeLessThan(500)
  })

  test('what a getter threw is the cause', () => {
    const cause = new Error('boom')
    expect(refusalOf(throwing(cause)).cause).toBe(cause)
  })

  test('a detached buffer is refused as empty', () => {
    const bytes = bytesOf(textOf(lowEnergyDelivery()))
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    expect(refusalOf(bytes).body).toBe(bytes)
  })
})

const scoreDelivery = () => deliveryOf('cxScoreUpdated', { score: '87', added: true })

const parserFor = (schema: PayloadSchemas[string]) =>
  createDeliveryParser({ payloads: { cxScoreUpdated: schema } })

describe('payload schemas for types whose payload is not documented', () => {
  test('what the schema returns becomes the payload, and a caller’s object is never changed', () => {
    const parser = parserFor(z.object({ score: z.coerce.number() }))
    const body = scoreDelivery()
    for (const form of [body, textOf(body)]) {
      expect(parser.parse(form)).toEqual(deliveryOf('cxScoreUpdated', { score: 87 }))
    }
    expect(body).toEqual(scoreDelivery())
  })

  test.each<[string, z.core.$ZodType, unknown]>([
    ['strips', z.object({ score: z.string() }), { score: '87' }],
    ['transforms', z.object({ score: z.string().transform(Number) }), { score: 87 }],
    ['replaces', z.object({}).transform(() => undefined), undefined],
    ['accepts anything', z.any(), { score: '87', added: true }],
  ])('a schema that %s', (_, schema, payload) => {
    expect(parserFor(schema).parse(scoreDelivery()).notification.payload).toEqual(payload)
  })

  test('the payload stays an object whatever the schema accepts', () => {
    expect(parserFor(z.any()).safeParse(deliveryOf('cxScoreUpdated', 'text')).success).toBe(false)
  })

  test('other types are read as without a schema', () => {
    const parser = parserFor(z.never())
    expect(parser.parse(lowEnergyDelivery())).toEqual(lowEnergyDelivery())
    expect(parser.parse(deliveryOf('somethingNew', { a: 1 }))).toEqual(deliveryOf('somethingNew', { a: 1 }))
    expect(parser.safeParse(deliveryOf('lowEnergyAgentOpened', {})).success).toBe(false)
  })

  test('a schema for lowEnergyAgentOpened replaces the documented one', () => {
    const payloads = { lowEnergyAgentOpened: z.object({ callId: z.number() }) }
    const parser = createDeliveryParser({ payloads })
    const other = deliveryOf('lowEnergyAgentOpened', { callId: 1 })
    expect(parser.parse(other)).toEqual(other)
    expect(parser.safeParse(lowEnergyDelivery()).success).toBe(false)
  })
})

test.each(['__proto__', 'constructor'])('%s, which every object has, can be given a schema', (type) => {
  const payloads: PayloadSchemas = { [type]: z.object({ a: z.string() }) }
  const parser = createDeliveryParser({ payloads })
  expect(parser.safeParse(deliveryOf(type, { a: 'a' })).success).toBe(true)
  expect(parser.safeParse(deliveryOf(type, { a: 1 })).success).toBe(false)
})

/** A schema of nobody's, whose answer is what `validate` returns or throws. */
const schemaOf = (validate: () => never) => ({
  '~standard': { version: 1 as const, vendor: 'mine', validate },
})

describe('a schema that cannot answer', () => {
  test('and shows only later that it is asynchronous is named as the reason', () => {
    const parser = parserFor(z.object({}).refine(() => Promise.resolve(true)))
    for (const body of [scoreDelivery(), scoreDelivery()]) {
      const { error } = parser.safeParse(body)
      expect(error?.message).toMatch(
        /^Not a notification delivery: `notification\.payload`: the schema for "cxScoreUpdated" is asynchronous or failed \(/,
      )
      expect(error?.cause).toBeInstanceOf(Error)
    }
  })

  test('is an InvalidDeliveryError, whatever it throws', () => {
    const trap = () => {
      throw new Error('trap')
    }
    const proxy = new Proxy({}, { getPrototypeOf: trap, get: trap })
    for (const thrown of [undefined, null, Symbol('odd'), Object.create(null), proxy]) {
      const schema = schemaOf(() => {
        throw thrown
      })
      expect(() => parserFor(schema).parse(scoreDelivery())).toThrow(InvalidDeliveryError)
    }
  })
})

describe('the message about many or long problems', () => {
  test('lists the first few and counts the rest', () => {
    const parser = parserFor(z.object({ scores: z.array(z.number()) }))
    const errorOf = (count: number) =>
      parser.safeParse(deliveryOf('cxScoreUpdated', { scores: new Array(count).fill('x') })).error
    const error = errorOf(100_000)
    expect(error?.message).toContain('scores[4]')
    expect(error?.message).not.toContain('scores[5]')
    expect(error?.message).toContain('; and 99995 more.')
    expect(error?.issues).toHaveLength(21)
    expect(error?.issues.at(-1)).toEqual({ path: [], message: 'and 99980 more issues' })
    expect(errorOf(20)?.issues).toHaveLength(20)
  })

  test('marks what was cut, also where lines were joined', () => {
    const schema = schemaOf(() => {
      throw new Error(`begins\n${' '.repeat(300)}ends`)
    })
    expect(parserFor(schema).safeParse(scoreDelivery()).error?.message).toContain('(begins …)')
  })
})

test.each<[string, unknown, string[]]>([
  ['no options', undefined, ['payloads']],
  ['no payloads', {}, ['payloads']],
  ['null', { payloads: null }, ['payloads']],
  ['an array', { payloads: [z.object({})] }, ['payloads']],
  ['not a schema', { payloads: { a: z.object({}), b: { parse() {} } } }, ['payloads', 'b']],
  ['undefined for a schema', { payloads: { a: undefined } }, ['payloads', 'a']],
  ['something like a schema', { payloads: { a: { '~standard': {} } } }, ['payloads', 'a']],
  ['a name that is no option', { payloads: {}, payload: {} }, []],
])('options that cannot work: %s is a ConfigurationError with the path', (_, options, path) => {
  const create = () => createDeliveryParser(options as { payloads: PayloadSchemas })
  expect(create).toThrow(ConfigurationError)
  expect(create).toThrow(expect.objectContaining({ issues: [{ path, message: expect.any(String) }] }))
})
