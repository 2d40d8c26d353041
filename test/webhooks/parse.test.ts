import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import {
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
  const { error } = safeParseDelivery(body)
  expect(error).toBeInstanceOf(InvalidDeliveryError)
  expect(() => parseDelivery(body)).toThrow(InvalidDeliveryError)
  return error as InvalidDeliveryError
}

const pathsOf = (error: InvalidDeliveryError) => error.issues.map((issue) => issue.path.join('.'))

const textOf = (delivery: unknown) => JSON.stringify(delivery)
const bytesOf = (text: string) => new TextEncoder().encode(text)

describe('the delivery body (docs/service.md, Resources)', () => {
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
})

describe('what is not documented is kept (docs/service.md, Notification types and Resources)', () => {
  test.each(['cxScoreUpdated', 'somethingNew', '', 'LowEnergyAgentOpened'])(
    'type %j with any payload object is a delivery',
    (type) => {
      const delivery = deliveryOf(type, { score: [1, { deep: null }] })
      expect(parseDelivery(textOf(delivery))).toEqual(delivery)
    },
  )

  test('unknown fields at every level, as deep as the limit of a body allows, and a new ver', () => {
    const text = textOf(changed(['notification', 'ver'], '99')).replaceAll('{"', '{"added":1,"')
    expect(parseDelivery(text)).toEqual(JSON.parse(text))
    const nested = '['.repeat(100_000) + ']'.repeat(100_000)
    expect(safeParseDelivery(text.replace('{', `{"deep":${nested},`)).success).toBe(true)
  })

  test('a field named __proto__, which pollutes nothing', () => {
    const text = textOf(lowEnergyDelivery()).replaceAll('{"', '{"__proto__":{"polluted":true},"')
    const delivery = parseDelivery(text)
    expect(textOf(delivery)).toBe(text)
    expect(Object.getPrototypeOf(delivery.notification.payload)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect(pathsOf(refusalOf('{"__proto__":{"subscriptionId":1}}'))).toContain('subscriptionId')
  })
})

describe('the forms of a body', () => {
  const text = textOf(changed(['notification', 'payload', 'username'], 'Zoë = 🎧 & so & on'))
  const bytes = bytesOf(text)
  const padded = new Uint8Array(bytes.length + 8)
  padded.set(bytes, 4)

  test.each<[string, unknown]>([
    ['a string', text],
    ['a Buffer', Buffer.from(text)],
    ['an ArrayBuffer', bytes.slice().buffer],
    ['a DataView', new DataView(bytes.slice().buffer)],
    ['a view on the middle of a buffer', padded.subarray(4, 4 + bytes.length)],
    ['an ArrayBuffer of another realm', runInNewContext('Uint8Array.from(bytes).buffer', { bytes })],
    ['an object of another realm', runInNewContext('JSON.parse(text)', { text })],
    ['an object without a prototype', Object.assign(Object.create(null), JSON.parse(text))],
  ])('%s is read', (_, body) => {
    expect(textOf(parseDelivery(body))).toBe(textOf(JSON.parse(text)))
  })

  test('an object comes back as the same object, frozen or not', () => {
    for (const delivery of [lowEnergyDelivery(), Object.freeze(lowEnergyDelivery())]) {
      expect(parseDelivery(delivery)).toBe(delivery)
    }
  })

  test('bytes that are not UTF-8 do not disturb the next body', () => {
    refusalOf(bytes.subarray(0, text.indexOf('ë') + 1))
    expect(parseDelivery(bytes)).toEqual(JSON.parse(text))
  })
})

// Wording: test/messages/deliveries.txt, encoded-bodies.txt.
describe('the error', () => {
  test.each<[string, unknown]>([
    ['text', '{"subscriptionId": 1'],
    ['bytes', new Uint8Array([0xff])],
    ['an object', { subscriptionId: 1 }],
  ])('keeps the body to the letter: %s', (_, body) => {
    const error = refusalOf(body)
    expect(error.body).toBe(body)
    expect(Object.keys(error)).not.toContain('body')
  })

  test.each(['{"secret": tomorrow}', '{"secret":1,}', '{"secret":"tomo', '{"secret":'])(
    'quotes nothing of %s',
    (body) => {
      const error = refusalOf(body)
      expect(error.issues).toMatchObject([{ path: [] }])
      expect(inspect(error, { depth: 9 })).not.toMatch(/secret|tomo/)
    },
  )

  const { proxy: revoked, revoke } = Proxy.revocable({}, {})
  revoke()
  const throwing = (thrown: unknown) => ({
    get subscriptionId() {
      throw thrown
    },
  })

  test.each<[string, () => unknown, paths?: string[]]>([
    ['1 MB that is not JSON', () => 'a'.repeat(1e6)],
    ['1 MB in a wrong field', () => changed(['subscriptionId'], 'a'.repeat(1e6)), ['subscriptionId']],
    ['100,000 nested arrays', () => '['.repeat(1e5) + ']'.repeat(1e5)],
    ['a symbol', () => Symbol('body')],
    ['a revoked proxy', () => revoked],
    ['a getter that throws', () => throwing(new Error('long '.repeat(1e5)))],
    ['a getter that throws a symbol', () => throwing(Symbol('odd'))],
    ['an object that says it is an ArrayBuffer', () => ({ [Symbol.toStringTag]: 'ArrayBuffer' })],
  ])('is short, and the only one, for %s', (_, makeBody, paths = ['']) => {
    const error = refusalOf(makeBody())
    expect(pathsOf(error)).toEqual(paths)
    expect(error.message.length).toBeLessThan(500)
  })

  test('lists the first few of many problems, and counts the rest', () => {
    const payloads = { scores: z.object({ scores: z.array(z.number()) }) }
    const scores = new Array(100_000).fill('x')
    const { error } = createDeliveryParser({ payloads }).safeParse(deliveryOf('scores', { scores }))
    expect(error?.message).toMatch(/scores\[4\][^[]*; and 99995 more\.$/)
    expect(error?.issues).toHaveLength(20)
  })
})

const scoreDelivery = () => deliveryOf('cxScoreUpdated', { score: '87', added: true })

const parserFor = (schema: PayloadSchemas[string]) =>
  createDeliveryParser({ payloads: { cxScoreUpdated: schema } })

describe('payload schemas for types whose payload is not documented', () => {
  test('a caller’s object is never changed', () => {
    const parser = parserFor(z.object({ score: z.coerce.number() }))
    const body = scoreDelivery()
    for (const form of [body, textOf(body)]) {
      expect(parser.parse(form)).toEqual(deliveryOf('cxScoreUpdated', { score: 87 }))
    }
    expect(body).toEqual(scoreDelivery())
  })

  test('whatever a schema returns becomes the payload', () => {
    const returned = (schema: PayloadSchemas[string]) =>
      parserFor(schema).parse(scoreDelivery()).notification.payload
    expect(returned(z.object({}).transform(() => undefined))).toBeUndefined()
    expect(returned(z.any())).toEqual(scoreDelivery().notification.payload)
  })

  test('other types are read as without a schema', () => {
    const parser = parserFor(z.never())
    expect(parser.parse(lowEnergyDelivery())).toEqual(lowEnergyDelivery())
    expect(parser.parse(deliveryOf('somethingNew', { a: 1 }))).toEqual(deliveryOf('somethingNew', { a: 1 }))
    expect(parser.safeParse(deliveryOf('lowEnergyAgentOpened', {})).success).toBe(false)
  })

  test.each(['lowEnergyAgentOpened', '__proto__'])('a schema for %s replaces what is known of it', (type) => {
    const payloads = { [type]: z.object({ callId: z.number() }) }
    const parser = createDeliveryParser({ payloads })
    expect(parser.parse(deliveryOf(type, { callId: 1 }))).toEqual(deliveryOf(type, { callId: 1 }))
    expect(parser.safeParse(deliveryOf(type, { callId: 'a' })).success).toBe(false)
  })
})
