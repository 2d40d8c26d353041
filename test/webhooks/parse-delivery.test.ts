import { runInNewContext } from 'node:vm'
import { InvalidDeliveryError, parseDelivery, safeParseDelivery } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { changed, deliveryOf, lowEnergyDelivery, lowEnergyPayload } from './deliveries.js'

function refusalOf(body: unknown): InvalidDeliveryError {
  const result = safeParseDelivery(body)
  if (result.success) throw new Error('expected the body to be refused')
  return result.error
}

const pathsOf = (error: InvalidDeliveryError) => error.issues.map((issue) => issue.path.join('.'))

const textOf = (delivery: unknown) => JSON.stringify(delivery)
const bytesOf = (text: string) => new TextEncoder().encode(text)

describe('the delivery body (docs/service.md, Resources)', () => {
  test('a lowEnergyAgentOpened delivery is returned as sent', () => {
    expect(parseDelivery(textOf(lowEnergyDelivery()))).toEqual(lowEnergyDelivery())
  })

  test.each([
    ['subscriptionId'],
    ['notification'],
    ['notification', 'id'],
    ['notification', 'time'],
    ['notification', 'ver'],
    ['notification', 'type'],
    ['notification', 'payload'],
    ['notification', 'payload', 'callId'],
    ['notification', 'payload', 'username'],
    ['notification', 'payload', 'bTime'],
    ['notification', 'payload', 'nTime'],
    ['notification', 'payload', 'idx'],
  ])('a delivery without %s %s %s is refused, and the issue has its path', (...keys) => {
    const path = keys.filter((key) => key !== undefined)
    expect(refusalOf(changed(path, undefined)).issues.map((issue) => issue.path)).toEqual([path])
    expect(refusalOf(changed(path, null)).issues.map((issue) => issue.path)).toEqual([path])
  })

  test.each([1.5, '4711', 2 ** 53, true])('a subscriptionId of %j is refused', (value) => {
    expect(pathsOf(refusalOf(changed(['subscriptionId'], value)))).toEqual(['subscriptionId'])
  })

  test.each([
    ['notification', 'id'],
    ['notification', 'ver'],
    ['notification', 'type'],
    ['notification', 'payload', 'callId'],
    ['notification', 'payload', 'username'],
  ])('a number as %s %s %s is refused, any string is accepted', (...keys) => {
    const path = keys.filter((key) => key !== undefined)
    expect(pathsOf(refusalOf(changed(path, 1)))).toEqual([path.join('.')])
    expect(safeParseDelivery(changed(path, '')).success).toBe(true)
    expect(safeParseDelivery(changed(path, 'not a uuid')).success).toBe(true)
  })

  test.each([
    ['notification', 'time'],
    ['notification', 'payload', 'bTime'],
    ['notification', 'payload', 'nTime'],
    ['notification', 'payload', 'idx'],
  ])('%s %s %s is any integer: of any sign and size, not a fraction, not a string', (...keys) => {
    const path = keys.filter((key) => key !== undefined)
    for (const integer of [0, -0, -21648, 2 ** 53 + 2, 1e300]) {
      expect(parseDelivery(textOf(changed(path, integer)))).toEqual(
        JSON.parse(textOf(changed(path, integer))),
      )
    }
    for (const value of [0.5, 35912.000000000007, '35912', false, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(pathsOf(refusalOf(changed(path, value)))).toEqual([path.join('.')])
    }
  })

  test.each([[[]], ['text'], [1], [true]])('a payload of %j is refused', (payload) => {
    expect(pathsOf(refusalOf(deliveryOf('cxScoreUpdated', payload)))).toEqual(['notification.payload'])
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

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'type %j is a type like any other',
    (type) => {
      expect(parseDelivery(deliveryOf(type, { a: 1 })).notification.payload).toEqual({ a: 1 })
    },
  )

  test('unknown fields at every level and a new ver are kept', () => {
    const delivery = lowEnergyDelivery()
    const extended = {
      ...delivery,
      added: 1,
      notification: {
        ...delivery.notification,
        ver: '99',
        added: 2,
        payload: { ...lowEnergyPayload(), added: 3 },
      },
    }
    expect(parseDelivery(textOf(extended))).toEqual(extended)
    const { notification } = parseDelivery(extended)
    if (notification.type !== 'lowEnergyAgentOpened') throw new Error('expected the type that was sent')
    expect(notification.payload).toHaveProperty('added', 3)
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
  const text = textOf(changed(['notification', 'payload', 'username'], 'Zoë 🎧'))
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

  test('only one byte order mark is ignored', () => {
    expect(refusalOf(`\uFEFF\uFEFF${text}`).message).toContain('not JSON')
    expect(refusalOf(bytesOf(`\uFEFF\uFEFF\uFEFF${text}`)).message).toContain('not JSON')
  })

  test('bytes that are not UTF-8 do not disturb the next body', () => {
    expect(refusalOf(bytes.subarray(0, text.indexOf('ë') + 1)).message).toContain('not UTF-8')
    expect(parseDelivery(bytes)).toEqual(JSON.parse(text))
  })
})

describe('the error', () => {
  test.each<[string, unknown, string | RegExp]>([
    ['an empty string', '', 'the body is empty'],
    ['white space', ' \n', 'the body is empty'],
    ['no bytes', new Uint8Array(), 'the body is empty'],
    ['a byte order mark alone', '\uFEFF', 'the body is empty'],
    ['bytes that are not UTF-8', new Uint8Array([0x7b, 0xff]), 'the body is not UTF-8'],
    ['a cut off body', '{"subscriptionId":', /the body is not JSON \(.*end of JSON input/],
    ['a trailing comma', '{"subscriptionId":1,}', /the body is not JSON \(.*position 20/],
    ['a form body', 'notification=1', 'the body is not JSON'],
    ['an array', '[{}]', 'an object is needed, not a list'],
    ['JSON null', 'null', 'an object is needed, not null'],
    ['a JSON string', '"{}"', 'an object is needed, not text'],
    ['nothing', undefined, 'an object is needed, not undefined'],
    ['a bigint', 1n, 'an object is needed, not a bigint'],
    ['a symbol', Symbol('body'), 'an object is needed, not a symbol'],
    ['a function', () => lowEnergyDelivery(), 'an object is needed, not a function'],
    [
      'an empty object',
      {},
      '`subscriptionId` is missing: it must be a number; `notification` is missing: it must be an object.',
    ],
    [
      'a wrong field',
      changed(['notification', 'payload', 'callId'], 7),
      '`notification.payload.callId` must be text, not a number',
    ],
  ])('%s is named in the first sentence', (_, body, sentence) => {
    const error = refusalOf(body)
    expect(error.message).toMatch(/^Not a notification delivery: .* The body is in error\.body\.$/)
    expect(error.message).toMatch(sentence)
    expect(error.issues.length).toBeGreaterThan(0)
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

  test('has what an object’s getter threw as cause', () => {
    const cause = new Error('boom')
    const body = {
      get subscriptionId() {
        throw cause
      },
    }
    expect(refusalOf(body).cause).toBe(cause)
    expect(refusalOf(body).message).toContain('the body cannot be read (boom)')
  })

  test('has the engine’s error as cause where there is one', () => {
    expect(refusalOf('{').cause).toBeInstanceOf(SyntaxError)
    expect(refusalOf('{}')).not.toHaveProperty('cause')
  })

  test('stands on one line even if the body does not', () => {
    expect(refusalOf('{"a\n":\u2028').message).not.toMatch(/[\n\u2028]/)
  })

  test.each<[string, () => unknown]>([
    ['20 MB that are not JSON', () => 'a'.repeat(20e6)],
    ['20 MB of white space', () => ' '.repeat(20e6)],
    ['20 MB in a wrong field', () => textOf(changed(['subscriptionId'], 'a'.repeat(20e6)))],
    ['20 MB of bytes', () => new Uint8Array(20e6)],
    ['100,000 nested arrays', () => '['.repeat(1e5) + ']'.repeat(1e5)],
    [
      '100,000 nested objects in a wrong field',
      () => `{"subscriptionId":${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}}`,
    ],
    ['a million unclosed arrays', () => '['.repeat(1e6)],
  ])('is short and quick: %s', (_, makeBody) => {
    const body = makeBody()
    const start = performance.now()
    const error = refusalOf(body)
    expect(performance.now() - start).toBeLessThan(2000)
    expect(error.message.length).toBeLessThan(500)
  })

  test('nesting in an unknown field is no reason to refuse', () => {
    const nested = '['.repeat(1e5) + ']'.repeat(1e5)
    expect(safeParseDelivery(textOf(lowEnergyDelivery()).replace('{', `{"added":${nested},`)).success).toBe(
      true,
    )
  })
})

describe('objects that misbehave are refused', () => {
  const throwing = (thrown: unknown) => ({
    get subscriptionId() {
      throw thrown
    },
  })
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  }
  const trapped = new Proxy(
    {},
    {
      get: () => {
        throw new Error('trap')
      },
      getPrototypeOf: () => {
        throw new Error('trap')
      },
    },
  )

  test.each<[string, unknown, string]>([
    ['a getter that throws', throwing(new Error('from a getter')), 'the body cannot be read (from a getter)'],
    ['a getter that throws a symbol', throwing(Symbol('odd')), 'the body cannot be read'],
    ['a getter that throws undefined', throwing(undefined), 'the body cannot be read'],
    [
      'a getter that throws an object without a prototype',
      throwing(Object.create(null)),
      'the body cannot be read',
    ],
    ['a getter that throws a proxy that throws', throwing(trapped), 'the body cannot be read'],
    [
      'a getter that throws a long message',
      throwing(new Error('long '.repeat(1e5))),
      'the body cannot be read',
    ],
    ['a proxy whose traps throw', trapped, 'the body cannot be read (trap)'],
    ['a revoked proxy', revoked(), 'the body cannot be read'],
    ['an object that says it is an ArrayBuffer', { [Symbol.toStringTag]: 'ArrayBuffer' }, 'not UTF-8'],
  ])('%s', (_, body, sentence) => {
    const error = refusalOf(body)
    expect(error).toBeInstanceOf(InvalidDeliveryError)
    expect(error.message).toContain(sentence)
    expect(error.message.length).toBeLessThan(500)
  })

  test('an object that changes while it is read gives a delivery or an InvalidDeliveryError', () => {
    const results = Array.from({ length: 10 }, (_, wrongReads) => {
      let reads = 0
      return safeParseDelivery({
        ...lowEnergyDelivery(),
        get subscriptionId() {
          reads += 1
          return reads > wrongReads ? 1 : 'not yet'
        },
      })
    })
    const messages = results.map((result) => result.error?.message ?? 'a delivery')
    expect(messages[0]).toBe('a delivery')
    expect(messages.at(-1)).toContain('`subscriptionId` must be a number, not text')
  })

  test('a detached buffer is refused as empty', () => {
    const bytes = bytesOf(textOf(lowEnergyDelivery()))
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    expect(refusalOf(bytes).body).toBe(bytes)
  })
})
